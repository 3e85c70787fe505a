//go:build darwin || freebsd

package cmd

import (
	"errors"

	"golang.org/x/sys/unix"
)

// await blocks until the caller is gone. It returns false when the system
// cannot tell; then the caller is only looked at when something is decided.
func (c *caller) await() bool {
	kq, err := unix.Kqueue()
	if err != nil {
		return false
	}
	unix.CloseOnExec(kq)
	var changes []unix.Kevent_t
	var parent unix.Kevent_t
	unix.SetKevent(&parent, c.parent, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	parent.Fflags = unix.NOTE_EXIT
	changes = append(changes, parent)
	if c.stdout >= 0 {
		// Edge-triggered: a pipe with room is no news, its reader's end is.
		var reader unix.Kevent_t
		unix.SetKevent(&reader, c.stdout, unix.EVFILT_WRITE, unix.EV_ADD|unix.EV_CLEAR)
		changes = append(changes, reader)
	}
	events := make([]unix.Kevent_t, len(changes))
	for {
		_, err := unix.Kevent(kq, changes, events, nil)
		changes = nil
		if c.Gone() {
			return true
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return false
		}
	}
}
