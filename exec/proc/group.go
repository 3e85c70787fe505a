package proc

// What is left of a New group after its leader. A group is left alone unless
// the caller asks: a background process of a successful command was meant. A
// failed attempt's group is ended in two steps, so that the wait before the
// next attempt is its grace: EndGroup at once, KillGroup before the next start.
// One that was being ended while its leader lived is followed to its end: the
// limit that has passed was for all of it, and its grace is the leader's.

import (
	"errors"
	"syscall"
	"time"
)

// settleLimit bounds how long killed processes are waited for. It is no pause:
// only what the system cannot end, or has no time to, takes it.
const settleLimit = 2 * time.Second

// GroupAlive reports whether a New group has members that live: the child
// itself, or others after its end. It is false for a Shared one after the
// child's end.
func (p *Process) GroupAlive() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.groupAlive()
}

// EndGroup asks what the child left in its New group to end: SIGTERM and
// SIGCONT. In Shared mode it does nothing.
func (p *Process) EndGroup() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.group != New || !p.groupAlive() {
		return nil
	}
	return p.terminate()
}

// KillGroup kills what is left of a New group and waits until it is gone, for two
// seconds at most. It reports whether it is. In Shared mode it does
// nothing and reports true.
func (p *Process) KillGroup() bool {
	if p.group != New {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.groupAlive() {
		return true
	}
	if p.signal(syscall.SIGKILL) != nil {
		return false
	}
	deadline := time.Now().Add(settleLimit)
	for p.groupAlive() {
		left := time.Until(deadline)
		if left <= 0 {
			return false
		}
		awaitMember(p.pid, left)
	}
	return true
}

// awaitGroup returns when nothing is left of a New group that was told to end,
// and reports whether that is so. A Kill that does not get it there ends the
// wait after settleLimit.
func (p *Process) awaitGroup() bool {
	hurry := p.hurry
	var over <-chan time.Time // since the Kill
	for p.toBeAwaited() {
		if over == nil && p.wasKilled() {
			hurry, over = nil, time.NewTimer(settleLimit).C
		}
		select {
		case <-p.memberEnds():
		case <-hurry:
		case <-over:
			return false
		}
	}
	return true
}

// memberEnds returns a channel that is closed when a member of the group has
// ended, or memberLimit is over.
func (p *Process) memberEnds() <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		awaitMember(p.pid, memberLimit)
	}()
	return ended
}

// memberLimit is how long one member is waited for at a stretch. It bounds what
// stays behind when another member's end has ended the wait.
const memberLimit = time.Minute

// toBeAwaited reports whether a group was told to end and has not.
func (p *Process) toBeAwaited() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return (p.terminated || p.killed) && p.group == New && p.groupAlive()
}

func (p *Process) groupAlive() bool {
	switch {
	case p.gone:
		return false
	case !p.reaped:
		return true
	case !p.probe():
		p.gone = true
		return false
	}
	return len(living(p.pid)) > 0
}

// probe reports whether the group still has a member, zombies included.
func (p *Process) probe() bool {
	err := p.signalStragglers(0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

// signalStragglers signals the group of a reaped child; see signal.go.
func (p *Process) signalStragglers(sig syscall.Signal) error {
	if err := signalGroupByPidfd(p.pidfd, sig); !errors.Is(err, errNoPidfd) {
		return err
	}
	if !errors.Is(syscall.Kill(p.pid, 0), syscall.ESRCH) {
		return syscall.ESRCH
	}
	return syscall.Kill(-p.pid, sig)
}
