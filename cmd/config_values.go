package cmd

// What a value in a file must look like: the same parsers that read flags and
// variables, and some more care where a file is read far from where it was
// written.

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/retryx/retryx/budget"
	"github.com/retryx/retryx/classify"
)

// check reports what is wrong with a value of the setting, or with one entry
// of it when it is a list. An empty value puts a setting without default back
// to nothing.
func (s setting) check(v string) error {
	switch {
	case strings.ContainsRune(v, 0):
		return errors.New("holds a zero byte; remove it")
	case v == "" && s.kind == text && s.def == "":
		return nil
	case s.kind == toggle:
		return checkFileToggle(v)
	case s.choices != nil:
		return checkChoice(v, s.choices)
	}
	for _, short := range shorthands() {
		if short.name == s.name && short.test != "exit" {
			_, err := classify.ParseRule(short.rule(v))
			return err
		}
	}
	return s.checkByName(v)
}

func (s setting) checkByName(v string) error {
	var err error
	switch s.name {
	case "delay", "max-delay", "max-retry-after", "max-elapsed", "timeout", "kill-after", "min-attempt", "breaker-cooldown", "hook-timeout":
		_, err = parseDuration(v)
	case "max-attempts", "breaker-threshold":
		_, err = parseInteger(v, 1)
	case "max-corrections":
		_, err = parseInteger(v, 0)
	case "multiplier":
		_, err = parseMultiplier(v)
	case "deadline":
		_, err = parseDeadline(v, time.Time{})
	case "retry-on":
		_, err = parseClasses(v)
	case "success-exit", "retry-exit", "stop-exit":
		_, err = classify.ParseExitList(v)
	case "budget":
		err = checkBudgetNames(v)
	case "budget-capacity", "run-budget":
		_, err = budget.ParseCapacity(v)
	case "budget-refill":
		_, err = budget.ParseRefill(v)
	case "budget-bonus":
		_, err = budget.ParseBonus(v)
	case "budget-store":
		err = checkStore(v, origin{kind: fromConfig})
	case "stdin-limit":
		_, err = parseSize(v)
	case "redact":
		err = checkRedaction(v)
	default:
		err = s.checkPath(v)
	}
	return err
}

func (s setting) checkPath(v string) error {
	switch s.name {
	case "cancel-file", "outcome", "state-dir":
	default:
		return nil // a command line: anything
	}
	if strings.HasPrefix(v, "~") {
		return fmt.Errorf("%q would be taken as it stands, as no shell reads it; write the whole path", v)
	}
	switch s.name {
	case "cancel-file":
		return checkCancelFile(v)
	case "outcome":
		return checkDestination(v)
	}
	if !filepath.IsAbs(v) {
		return fmt.Errorf("want a path from the root, not %q, which means another place in every working directory", v)
	}
	return nil
}

// checkFileToggle takes only what YAML and its schema take for true or false.
func checkFileToggle(v string) error {
	switch v {
	case "true", "True", "TRUE", "false", "False", "FALSE":
		return nil
	}
	return fmt.Errorf("want true or false, not %q", v)
}

func checkBudgetNames(v string) error {
	for name := range strings.SplitSeq(v, ",") {
		if _, err := budget.ParseName(name); err != nil {
			return err
		}
	}
	return nil
}

func checkRedaction(v string) error {
	if v == "" {
		return errors.New("an empty pattern would hide everything; write one or remove it")
	}
	_, err := parsePattern(v)
	return err
}
