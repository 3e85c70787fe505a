// Package faulttest holds nothing but tests of what budgets do when the system
// fails them: it runs stores and whole programs under a tracer that kills them at
// a system call, or makes the call fail, one call after the other.
//
// The tracer is ptrace(2) on Linux on amd64; elsewhere only the tests without it
// run.
package faulttest
