//go:build darwin || freebsd

package proc

import (
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// inputQueue asks a pipe how many bytes it holds: FIONREAD of sys/filio.h.
	inputQueue = 0x4004667f
	// getModes and setModes are the requests for a terminal's modes.
	getModes = unix.TIOCGETA
	setModes = unix.TIOCSETA
	// pollClosed is nothing: a socket whose peer sends no more shows POLLHUP.
	pollClosed = 0
)

// errNoPidfd says that the system cannot signal a group through a pidfd.
var errNoPidfd = errors.New("no group signals by pidfd")

// systemAttr gives a New group its own number. There is no way here to make the
// child die with us.
func systemAttr(group Group, _ *int) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: group == New}
}

// waitable blocks until the child has ended, and leaves it to be reaped. It
// returns at once where there is no queue to be had (EMFILE). A child that is a
// zombie already cannot be watched any more, which is an answer too.
func waitable(pid int) {
	queue, err := unix.Kqueue()
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(queue) }()
	unix.CloseOnExec(queue)
	changes := make([]unix.Kevent_t, 1)
	unix.SetKevent(&changes[0], pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	changes[0].Fflags = unix.NOTE_EXIT
	events := make([]unix.Kevent_t, 1)
	_ = ignoreEINTR(func() error {
		_, err := unix.Kevent(queue, changes, events, nil)
		return err
	})
}

func signalGroupByPidfd(int, syscall.Signal) error { return errNoPidfd }

func closePidfd(int) {}

// awaitMember returns a moment later: there is no way to wait for a process
// that is not ours.
func awaitMember(_ int, limit time.Duration) {
	_, _ = unix.Poll(nil, int(min(limit, 2*time.Millisecond).Milliseconds())+1)
}
