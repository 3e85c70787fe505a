//go:build darwin || freebsd

package statefile

import "golang.org/x/sys/unix"

// lockOnCreate takes the lock together with making the file.
const lockOnCreate = unix.O_EXLOCK | unix.O_NONBLOCK

// create makes a missing file.
func (f File) create(h *folder, change func(Content) []byte) error {
	return f.createLocked(h, change)
}
