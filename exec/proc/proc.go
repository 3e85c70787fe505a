// Package proc runs one operating system process for one attempt: it starts
// it, passes its output on, signals it and reports how it ended.
//
// The rules it obeys:
//
//   - It has no policy. When to signal, terminate or kill is the caller's
//     decision; nothing here is retried and no signal is ever sent unasked.
//   - Nothing polls for the exit where the system can tell it. One goroutine
//     waits in the kernel for the child, one more copies each captured stream,
//     one feeds a replay; a group that is being ended has one while it outlives
//     its leader.
//   - A descriptor the caller inherited reaches the child untouched; one that
//     this package opened never does, apart from the child's own 0, 1 and 2.
//   - No signal is sent to a process number that may have been given away:
//     see the rules in signal.go.
//   - A child never learns what became of its output: a reader that is gone,
//     slow or full is this package's problem, see stream.go.
package proc

import (
	"errors"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Group says which process group the child runs in, and so what signals reach.
type Group int

const (
	// Shared leaves the child in our group, so that the terminal treats both
	// as one job. Signals sent here reach the child alone, not its children.
	Shared Group = iota
	// New gives the child a group of its own. Signals reach all of it.
	New
)

// DefaultWaitDelay is the WaitDelay of a Spec that names none.
const DefaultWaitDelay = time.Second

// A Spec describes one process. The zero value of every field but Argv is
// usable.
type Spec struct {
	// Argv is the command as the child will see it, Argv[0] included. A name
	// without a slash is looked for in our PATH as execvp does.
	Argv []string
	// Env is the child's environment, verbatim; nil means ours.
	Env []string
	// Stdin is handed to the child as it is; nil means /dev/null.
	Stdin *os.File
	// Stdout and Stderr say where each stream goes.
	Stdout, Stderr Sink
	// Group is the child's process group.
	Group Group
	// WaitDelay bounds how long after the child's exit its captured streams
	// may stay without an end before they are reported as left open.
	WaitDelay time.Duration
}

// A Process is a started child. Its methods may be called from any goroutine,
// also after the child's end.
type Process struct {
	pid       int
	group     Group
	waitDelay time.Duration
	out, err  *stream // nil unless captured

	exited chan struct{}
	done   chan struct{}
	hurry  chan struct{} // closed by a Kill that finds the child gone
	result Result        // written before done is closed

	mu         sync.Mutex // guards the rest; held across every reap and signal
	reaped     bool
	gone       bool // nothing is left that a signal could reach
	terminated bool
	killed     bool
	pidfd      int // -1 when there is none
}

// A Result tells how a process ended.
type Result struct {
	// Code is the exit code, or -1 if a signal ended the child.
	Code int
	// Signal is the signal that ended the child, else 0.
	Signal syscall.Signal
	// Stdout and Stderr are the last TailBytes of what was captured; the
	// Truncated fields report whether there had been more.
	Stdout, Stderr                   []byte
	StdoutTruncated, StderrTruncated bool
	// LeftOpen reports that somebody else still held a captured stream open
	// when WaitDelay was over, usually a background process.
	LeftOpen bool
	// Unended reports that members of a New group have outlived a Kill: another
	// user's, or stuck in the system.
	Unended bool
	// MidLine reports that captured stderr ended without a newline, so that a
	// line of our own needs one first.
	MidLine bool
	// WriteErr is the first error met in passing captured output on, nil if
	// all of it was delivered. ErrStuck means that a reader took nothing for
	// a whole WaitDelay.
	WriteErr error
	// WaitErr is set when the system lost the exit status; Code is then -1.
	WaitErr error
}

// Start starts the process. The error is a *StartError; a child never exists
// then.
//
// On Linux the child gets SIGTERM when the OS thread that called Start ends,
// which is meant to be when we are killed. So the caller must be locked to a
// thread that lives as long as the program (golang/go#27505): else the Go
// runtime may retire the thread, and the child dies in mid-attempt.
func Start(spec Spec) (*Process, error) {
	program, err := locate(spec.Argv)
	if err != nil {
		return nil, err
	}
	pipes, err := lay(spec)
	if err != nil {
		return nil, &StartError{Argv0: spec.Argv[0], Err: err}
	}
	pid, pidfd, err := launch(program, spec, pipes)
	pipes.closeChildEnds()
	if err != nil {
		pipes.closeOurEnds()
		return nil, newStartError(spec.Argv[0], program, err)
	}
	p := &Process{
		pid:       pid,
		pidfd:     pidfd,
		group:     spec.Group,
		waitDelay: spec.WaitDelay,
		out:       pipes.out,
		err:       pipes.err,
		exited:    make(chan struct{}),
		done:      make(chan struct{}),
		hurry:     make(chan struct{}),
	}
	if p.waitDelay <= 0 {
		p.waitDelay = DefaultWaitDelay
	}
	for _, s := range p.streams() {
		go s.run()
	}
	go p.wait()
	return p, nil
}

// Pid returns the child's process number. In a New group it is the group's
// number too. After Exited it may belong to somebody else.
func (p *Process) Pid() int { return p.pid }

// Exited is closed when the child itself has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Done is closed when the child has ended and Result is complete: its captured
// output was read to the end, or WaitDelay is over. Everything the child itself
// wrote is waited for as long as our own reader goes on taking it; a reader that
// takes nothing for a whole WaitDelay ends that too, and so does a Kill.
//
// A New group that Terminate or Kill has asked to end has ended only when all of
// it has: Done waits for what outlives the child, until a Kill ends that as well.
func (p *Process) Done() <-chan struct{} { return p.done }

// Result returns how the process ended. It may be called after Done only.
func (p *Process) Result() Result {
	<-p.done
	return p.result
}

// Close ends what a finished process still holds: captured output that others
// left open is no longer passed on, and its writers get SIGPIPE. Until then it
// is passed on as it comes, though not recorded. Call it after Done, and before
// the last lines of our own. It does Release as well.
func (p *Process) Close() {
	p.Release()
	for _, s := range p.streams() {
		s.close()
	}
}

// Lingers reports whether others still hold captured output open that was left
// open when Done was closed. Call it after Done.
func (p *Process) Lingers() bool {
	return slices.ContainsFunc(p.streams(), (*stream).lingers)
}

// Release gives up a New group: members that are left in it can no longer be
// signalled. What lingers is still passed on. Call it after Done.
func (p *Process) Release() {
	<-p.done
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = true
	closePidfd(p.pidfd)
	p.pidfd = -1
}

func (p *Process) streams() []*stream {
	var list []*stream
	for _, s := range []*stream{p.out, p.err} {
		if s != nil {
			list = append(list, s)
		}
	}
	return list
}

// wait is the one goroutine that follows the child to its end.
func (p *Process) wait() {
	waitable(p.pid)
	for !p.reap() { // the system could not be asked to wait
		<-time.NewTimer(unwatchedPause).C
	}
	close(p.exited)
	p.result.Unended = !p.awaitGroup()
	p.settle()
	close(p.done)
}

// unwatchedPause is how often a child is looked at that cannot be waited for.
const unwatchedPause = 10 * time.Millisecond

// reap takes the exit status; it reports false for a child that has not ended.
// Between waitable and here the child is a zombie and its number cannot be
// reused; the lock makes the number unusable for signals in the same moment in
// which the system may give it away. So nothing may wait under it.
func (p *Process) reap() bool {
	var pid int
	var status syscall.WaitStatus
	p.mu.Lock()
	defer p.mu.Unlock()
	err := ignoreEINTR(func() (err error) {
		pid, err = syscall.Wait4(p.pid, &status, syscall.WNOHANG, nil)
		return err
	})
	if err == nil && pid == 0 {
		return false
	}
	p.reaped = true
	p.gone = p.group == Shared || !p.probe()
	switch {
	case err != nil:
		p.result.Code = -1
		p.result.WaitErr = os.NewSyscallError("wait4", err)
	case status.Signaled():
		p.result.Code = -1
		p.result.Signal = status.Signal()
	default:
		p.result.Code = status.ExitStatus()
	}
	return true
}

// settle waits for the captured output and completes the result.
func (p *Process) settle() {
	streams := p.streams()
	for _, s := range streams {
		s.expect(p.waitDelay)
	}
	for _, s := range streams {
		s.await(p.waitDelay, p.hurry, p.wasKilled)
	}
	r := &p.result
	if p.out != nil {
		end := p.out.seal()
		r.Stdout, r.StdoutTruncated = end.tail, end.truncated
		r.LeftOpen, r.WriteErr = end.leftOpen, end.err
	}
	if p.err != nil {
		end := p.err.seal()
		r.Stderr, r.StderrTruncated = end.tail, end.truncated
		r.LeftOpen = r.LeftOpen || end.leftOpen
		r.MidLine = end.midLine
		if r.WriteErr == nil {
			r.WriteErr = end.err
		}
	}
}

func (p *Process) wasKilled() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.killed
}

// ignoreEINTR repeats a system call for as long as signals interrupt it.
func ignoreEINTR(call func() error) error {
	for {
		if err := call(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
