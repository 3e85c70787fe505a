package cmd

import (
	"errors"

	"golang.org/x/sys/unix"
)

// await blocks until the caller is gone. It returns false when the system
// cannot tell; then the caller is only looked at when something is decided.
func (c *caller) await() bool {
	pidfd, err := unix.PidfdOpen(c.parent, 0)
	if err != nil {
		return c.Gone() // ESRCH: gone already; ENOSYS: cannot tell
	}
	if c.Gone() { // between start and here the number may have got a new owner
		return true
	}
	fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	if c.stdout >= 0 {
		fds = append(fds, unix.PollFd{Fd: int32(c.stdout)})
	}
	for {
		_, err := unix.Poll(fds, -1)
		if err == nil {
			return true
		}
		if !errors.Is(err, unix.EINTR) {
			return false
		}
	}
}
