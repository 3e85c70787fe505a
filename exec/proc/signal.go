package proc

// Whom a signal reaches, and how it never reaches a stranger:
//
//   - Shared: the child alone. New: every member of its group, also those that
//     outlive the child.
//   - Until the child is reaped its number, and so its group's, cannot be given
//     away; the lock in Process keeps reaping and signalling apart.
//   - After that only a New group with members left is signalled: through the
//     child's pidfd where the system can do it (Linux 6.9), which names this
//     group for ever; else by number, which stays taken while the group has a
//     member, and only while no process carries it: if one does, the group was
//     gone and the number has been reused.
//   - Numbers of 1 and less are refused: kill(2) reads them as "our own group"
//     or "everybody".
//   - Nobody there (ESRCH) is silence, not an error. EPERM is reported.

import (
	"errors"
	"fmt"
	"syscall"
)

// Signal sends sig to the child, or to its whole group if that is New. Nothing
// left to signal is no error; EPERM is, when not one process could be reached.
func (p *Process) Signal(sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.signal(sig)
}

// Terminate asks the child to end: SIGTERM, and then SIGCONT to whoever is
// stopped, since a stopped process keeps SIGTERM pending. In Shared mode CONT
// is sent only to a child that is stopped: a debugger takes it amiss.
func (p *Process) Terminate() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.terminate()
}

// Kill ends the child with SIGKILL. If the child is gone already it ends the
// wait for its captured output instead: Done follows within half a second. After
// a Kill, Done comes no later than that and WaitDelay after the exit.
func (p *Process) Kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped && !p.killed {
		close(p.hurry)
	}
	p.killed = true
	return p.signal(syscall.SIGKILL)
}

func (p *Process) terminate() error {
	p.terminated = true
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	if p.group == New || !p.reaped && stopped(p.pid) {
		return p.signal(syscall.SIGCONT)
	}
	return nil
}

func (p *Process) signal(sig syscall.Signal) error {
	if p.pid <= 1 {
		return fmt.Errorf("signal process %d: %w", p.pid, syscall.EINVAL)
	}
	var err error
	switch {
	case p.gone:
		return nil
	case p.reaped:
		err = p.signalStragglers(sig)
	case p.group == New:
		err = p.signalGroup(sig)
	default:
		err = syscall.Kill(p.pid, sig)
	}
	if err == nil || errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return fmt.Errorf("signal process %d: %w", p.pid, err)
}

// signalGroup signals the group of a child that is not reaped yet. Darwin says
// EPERM for a group of zombies; asking the leader alone tells the two apart.
func (p *Process) signalGroup(sig syscall.Signal) error {
	err := syscall.Kill(-p.pid, sig)
	if errors.Is(err, syscall.EPERM) {
		return syscall.Kill(p.pid, sig)
	}
	return err
}
