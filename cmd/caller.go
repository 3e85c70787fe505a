package cmd

// Whoever waits for the result: the parent process, and the reader of our
// stdout when that is a pipe. When either is gone nobody is there to take a
// result, and further attempts are work for nobody.
//
// It is not looked at when INT or HUP was ignored at the start (nohup, jobs
// in the background of a script), when the parent is process 0 or 1 (docker
// exec, init, a parent lost before we could look), when we lead our session
// (setsid), or when our group is in the background of its terminal. There the
// caller is meant to leave, and how far it had left by the time we looked must
// not decide the result.

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/retryx/retryx/exec"
	"github.com/retryx/retryx/exec/proc"
)

// watchAfter is how long a run lasts before its caller is watched without a
// pause. Until then it is only looked at when something is decided, so that
// short runs pay for no watcher.
const watchAfter = 20 * time.Millisecond

// caller is the engine's Caller.
type caller struct {
	parent int // 0: not looked at
	stdout int // -1: no pipe
}

// newCaller returns nil when the caller is not to be looked at.
func newCaller(mode exec.OrphanMode, parent int, stdout *os.File, at proc.Standing) *caller {
	if mode == exec.OrphanIgnore || !attached(parent) || at == proc.Background {
		return nil
	}
	c := &caller{parent: parent, stdout: -1}
	if info, err := stdout.Stat(); err == nil && info.Mode()&os.ModeNamedPipe != 0 {
		c.stdout = int(stdout.Fd())
	}
	return c
}

// attached reports whether somebody is meant to wait for us.
func attached(parent int) bool {
	if parent <= 1 || signal.Ignored(syscall.SIGINT) || signal.Ignored(syscall.SIGHUP) {
		return false
	}
	if sid, err := unix.Getsid(0); err != nil || sid == os.Getpid() {
		return false
	}
	return true
}

// Gone reports whether the caller is gone now.
func (c *caller) Gone() bool {
	return os.Getppid() != c.parent || c.readerGone()
}

// readerGone reports whether stdout is a pipe that nobody reads any more.
func (c *caller) readerGone() bool {
	if c.stdout < 0 {
		return false
	}
	// Linux reports the error unasked; macOS only to who wants to write, as a
	// hangup, like FreeBSD.
	fds := []unix.PollFd{{Fd: int32(c.stdout), Events: unix.POLLOUT}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP|unix.POLLNVAL) != 0
}

// Watch returns a channel that is closed when the caller is gone.
func (c *caller) Watch() <-chan struct{} {
	gone := make(chan struct{})
	time.AfterFunc(watchAfter, func() {
		if c.await() {
			close(gone)
		}
	})
	return gone
}
