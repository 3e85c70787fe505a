// Package cmd is the command line of retryx: the only room that knows flags,
// configuration, environment, colour, JSON text and exit codes.
//
// The way of one run: arguments, environment and configuration files become
// one immutable settings value (flags.go, resolver.go, settings.go); run.go builds
// the engine from it, with adapters to the process and the judgement (child.go),
// the budgets (budgets.go) and whoever waits (caller.go); the outcome that comes
// back is written as one JSON line (outcome.go) and becomes an exit status
// (exit.go).
//
// What users read: lower case, no final period, what happened and then what to
// do. Our own lines go to stderr and start with "retryx: ".
package cmd
