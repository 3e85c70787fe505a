package exec

// The user's hooks.
//
//   - A hook is ended like an attempt: by a cancel, by its own limit and by the
//     ceilings. It never outlives the run.
//   - The outcome hook has lastWord in all after a cancel, and past a ceiling,
//     which may be what it is to report.
//   - What becomes of a hook is a warning, never the result.

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

func (r *run) has(h Hook) bool { return r.Hooks != nil && r.Hooks.Has(h) }

// tell runs a hook whose only answer is that it worked.
func (r *run) tell(h Hook) {
	if res, err := r.hook(h); err == nil && res.Code != 0 {
		r.warnOf(h, fmt.Errorf("the hook exited with %d", res.Code))
	}
}

// hook runs a hook. Its error says why the hook did not get to its own exit.
func (r *run) hook(h Hook) (Result, error) {
	started, err := r.Hooks.Start(h, &r.out)
	if err != nil {
		r.warnOf(h, err)
		return Result{}, err
	}
	p := &running{Process: started, grace: r.Policy.KillAfter}
	var timedOut bool
	if h == HookOnOutcome {
		timedOut = r.lastHook(p)
	} else {
		timedOut, _ = r.supervise(p, time.Now(), r.HookTime)
	}
	res := p.Result()
	switch {
	case timedOut:
		err = errors.New("the hook did not finish in time")
	case res.Signal != 0:
		err = fmt.Errorf("the hook was ended by %s", res.Signal)
	}
	if err != nil {
		r.warnOf(h, err)
	}
	return res, err
}

// lastHook awaits the outcome hook.
func (r *run) lastHook(p *running) (timedOut bool) {
	defer p.disarm()
	limit := r.HookTime
	if limit <= 0 {
		limit = NoCeiling
	}
	left := min(r.time())
	if r.out.Label == Cancelled || left < lastWord {
		p.grace = min(p.grace, r.Policy.EscalateAfter, lastWord/2)
		left = lastWord - p.grace
	}
	limit = min(limit, left)
	if r.awaitFor(p, limit) == ended {
		return false
	}
	timedOut = r.cut(p)
	r.await(waiting{p: p, done: p.Done()})
	return timedOut
}

func (r *run) warnOf(h Hook, err error) {
	r.out.warn(strings.ReplaceAll(string(h), "-", "_") + ": " + err.Error())
}
