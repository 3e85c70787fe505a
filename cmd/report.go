package cmd

// The report of one run: what is verified, what is not known, what failed.
//
//   - A step is what --step named; an invocation without one is a step by its
//     command line. What ran below another retryx without a step of its own is
//     part of that one.
//   - The last outcome of a step counts: success is verified, hard failure is
//     failed, everything else is unknown, and so is an expected step that never
//     ran. Nothing is called verified that was not seen to succeed.

import "strings"

const reportSchema = "retryx.report/v1"

// The statuses of a run.
const (
	runCompleted = "completed"
	runUnknowns  = "completed_with_unknowns"
	runFailed    = "failed"
	runCancelled = "cancelled"

	neverRan = "never_ran" // the reason of an expected step without an outcome
)

// report is what one run comes to.
type report struct {
	Schema   string   `json:"schema"`
	RunID    *string  `json:"run_id"`
	Status   string   `json:"status"`
	Reason   *string  `json:"terminal_reason"`
	Verified []string `json:"verified"`
	Unknown  []string `json:"unknown"`
	Failed   []string `json:"failed"`
	Attempts int      `json:"attempts"`
	Retries  int      `json:"retries"`

	steps []*stepResult
}

// stepResult is the last outcome of a step.
type stepResult struct {
	name, outcome, reason string
	attempts              int
}

// runs holds what a report needs of each run, and no more: which run is asked
// for is known only at the end of the journal.
type runs map[string]*runSteps

// runSteps are the steps of a run in the order in which they first ran.
type runSteps struct {
	steps             []*stepResult
	at                map[string]*stepResult
	attempts, retries int
}

func (r runs) add(d *document) {
	run := r[d.RunID]
	if run == nil {
		run = &runSteps{}
		r[d.RunID] = run
	}
	if d.Depth > 0 && d.Step == nil {
		return
	}
	name := orEmpty(d.Step)
	if d.Step == nil {
		name = commandLine(d.Command)
	}
	s := run.step(name)
	s.outcome, s.reason = d.Outcome, d.Reason
	s.attempts += d.AttemptCount
	run.attempts += d.AttemptCount
	run.retries += d.Retries
}

// fewSteps is up to which number of steps looking at each is cheaper than a map.
const fewSteps = 8

func (r *runSteps) step(name string) *stepResult {
	if r.at == nil {
		for _, s := range r.steps {
			if s.name == name {
				return s
			}
		}
	}
	if s := r.at[name]; s != nil {
		return s
	}
	s := &stepResult{name: name, reason: neverRan}
	r.steps = append(r.steps, s)
	switch {
	case r.at != nil:
		r.at[name] = s
	case len(r.steps) > fewSteps:
		r.at = map[string]*stepResult{}
		for _, s := range r.steps {
			r.at[s.name] = s
		}
	}
	return s
}

// sumUp makes the report of one run; run is nil when nothing is known of it.
func sumUp(runID string, run *runSteps, expect []string) *report {
	if run == nil {
		run = &runSteps{}
	}
	for _, name := range expect {
		if name = strings.TrimSpace(name); name != "" {
			run.step(name)
		}
	}
	rep := &report{
		Schema: reportSchema, RunID: filled(printable(runID)), Verified: []string{}, Unknown: []string{}, Failed: []string{},
		Attempts: run.attempts, Retries: run.retries, steps: run.steps,
	}
	for _, s := range rep.steps {
		s.name, s.reason = oneLine(printable(s.name)), oneLine(printable(s.reason))
	}
	rep.judge()
	return rep
}

// verdict is what is known of a step.
func (s *stepResult) verdict() string {
	switch s.outcome {
	case "success":
		return "verified"
	case "hard_failure":
		return "failed"
	default:
		return "unknown"
	}
}

func (r *report) judge() {
	cancelled := ""
	reasons := map[*[]string]string{}
	for _, s := range r.steps {
		list := &r.Unknown
		switch s.verdict() {
		case "verified":
			list = &r.Verified
		case "failed":
			list = &r.Failed
		}
		if s.outcome == "cancelled" {
			cancelled = s.reason
		}
		*list = append(*list, s.name)
		reasons[list] = s.reason
	}
	switch {
	case len(r.Failed) > 0:
		r.Status, r.Reason = runFailed, filled(reasons[&r.Failed])
	case cancelled != "":
		r.Status, r.Reason = runCancelled, filled(cancelled)
	case len(r.Unknown) > 0:
		r.Status, r.Reason = runUnknowns, filled(reasons[&r.Unknown])
	case len(r.steps) == 0:
		r.Status, r.Reason = runUnknowns, filled(neverRan)
	default:
		r.Status, r.Reason = runCompleted, filled(reasons[&r.Verified])
	}
}

func (r *report) exitStatus() int {
	switch r.Status {
	case runCompleted:
		return 0
	case runUnknowns:
		return exitRefused
	default:
		return 1
	}
}
