// Storm lets a service die under calls that retry, and shows what they do to it.
//
// Each scenario is one way of retrying, run by real processes against a service
// of its own on the loopback: well for a while, down, then back with little more
// capacity than the first attempts need. Storm prints the attempts per call over
// time, the peak at the service, the time to recovery and the success rate, draws
// the curves, and holds the scenarios that have a budget to its bound. It exits 1
// if the bound is broken, in the store, in any window, or at the service.
//
// retryx and probe are found by PATH; see bench/storm.sh.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A setting is what all scenarios share.
type setting struct {
	plan plan
	load load
	dir  string // an empty directory
	stop <-chan struct{}
}

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	if err := run(os.Args[1:], os.Stdout, ctx.Done()); err != nil {
		cancel()
		fmt.Fprintln(os.Stderr, "storm:", err)
		os.Exit(1)
	}
	cancel()
}

func run(args []string, w io.Writer, stop <-chan struct{}) error {
	flags := flag.NewFlagSet("storm", flag.ContinueOnError)
	warm := flags.Duration("warm", 10*time.Second, "how long the service is well at first")
	down := flags.Duration("down", time.Minute, "how long it is down")
	after := flags.Duration("after", time.Minute, "how long calls still arrive when it is back")
	grace := flags.Duration("grace", 15*time.Second, "how long the last calls may take")
	rate := flags.Float64("rate", 2, "calls a second")
	capacity := flags.Float64("capacity", 3, "requests a second that the service serves when it is back")
	healthy := flags.Float64("healthy", 50, "and before")
	queue := flags.Duration("queue", 10*time.Second, "longest wait that the service accepts")
	timeout := flags.Duration("timeout", 2*time.Second, "how long a client waits")
	seed := flags.Uint64("seed", 1, "of the arrivals")
	svg := flags.String("svg", "", "draw the curves into this file")
	dir := flags.String("dir", "", "an empty directory to work in")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *dir == "" {
		return errors.New("say -dir")
	}
	s := setting{
		plan: plan{Down: *warm, Up: *warm + *down, Healthy: *healthy, Capacity: *capacity, Queue: *queue},
		load: load{Rate: *rate, Until: *warm + *down + *after, Grace: *grace, Seed: *seed, Timeout: *timeout},
		dir:  *dir,
		stop: stop,
	}
	chosen, err := choose(flags.Args(), w)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%v well, %v down, then %g requests/s; %g calls/s arrive (seed %d); clients wait %v, the service queues %v\n",
		*warm, *down, *capacity, *rate, *seed, *timeout, *queue)
	results, err := s.all(chosen, w)
	if err != nil {
		return err
	}
	if *svg != "" {
		return drawCurves(*svg, results)
	}
	return nil
}

// choose returns the named scenarios, or all; what is not installed is left out,
// unless it was named.
func choose(names []string, w io.Writer) ([]scenario, error) {
	var chosen []scenario
	for _, sc := range scenarios() {
		if len(names) > 0 && !slices.Contains(names, sc.Name) {
			continue
		}
		if sc.Needs != "" {
			if _, err := exec.LookPath(sc.Needs); err != nil {
				if len(names) > 0 {
					return nil, err
				}
				fmt.Fprintf(w, "left out: %s is not installed\n", sc.Needs)
				continue
			}
		}
		chosen = append(chosen, sc)
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no scenario is called %s", strings.Join(names, " or "))
	}
	return chosen, nil
}

// all runs the scenarios one after another and prints what they did.
func (s setting) all(chosen []scenario, w io.Writer) ([]result, error) {
	var results []result
	heading(w)
	for _, sc := range chosen {
		r, err := s.one(sc)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", sc.Name, err)
		}
		r.line(w)
		results = append(results, r)
	}
	fmt.Fprintf(w, "\nrequests per arriving call over time, in steps of %v\n", s.load.Until/bins)
	for _, r := range results {
		r.overTime(w)
	}
	fmt.Fprintln(w, "\nthe bound")
	for _, r := range results {
		if r.audit != nil {
			r.bound(w)
		}
	}
	return results, nil
}

// one runs one scenario in a directory of its own.
func (s setting) one(sc scenario) (result, error) {
	dir := filepath.Join(s.dir, sc.Name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return result{}, err
	}
	if err := scripts(dir); err != nil {
		return result{}, err
	}
	outcomes := filepath.Join(dir, "outcomes")
	svc := &service{plan: s.plan}
	url, stop, err := svc.serve()
	if err != nil {
		return result{}, err
	}
	defer stop()
	r := &runner{load: s.load, service: svc, url: url, dir: dir, stop: s.stop, running: map[int]struct{}{}, env: append(os.Environ(),
		"HOME="+dir, "RETRYX_OUTCOME="+outcomes, "PROBE_TIMEOUT="+s.load.Timeout.String())}
	var calls []call
	if sc.Argv == nil {
		calls, err = r.jobs()
	} else {
		calls, err = r.calls(sc.Argv)
	}
	if err != nil {
		return result{}, err
	}
	done := result{scenario: sc, plan: s.plan, load: s.load, calls: calls, requests: svc.seen()}
	if sc.Budget {
		done.audit, err = r.audit(outcomes, calls, len(done.requests))
	}
	return done, err
}

// audit asks the store and the outcomes, and holds them to the bound.
func (r *runner) audit(outcomes string, calls []call, attempts int) (*audit, error) {
	show := r.command("retryx", "budget", "show", budgetName, "--format", "json")
	text, err := show.Output()
	if err != nil {
		return nil, fmt.Errorf("show budget: %w", err)
	}
	var a account
	if err := json.Unmarshal(text, &a); err != nil {
		return nil, fmt.Errorf("read budget: %w", err)
	}
	all, err := readOutcomes(outcomes)
	if err != nil {
		return nil, err
	}
	found, err := check(a, all, calls, attempts)
	return &found, err
}
