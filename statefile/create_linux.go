package statefile

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

const lockOnCreate = 0

// create makes a missing file. It appears with its content, owner and mode at
// once: it is made without a name, written, and given its name, which fails if
// somebody else was faster. Where that is not possible it is made empty.
func (f File) create(h *folder, change func(Content) []byte) error {
	payload := change(Content{})
	if payload == nil {
		return nil
	}
	fd, err := unix.Openat(h.fd, ".", unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, h.fileMode())
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EINVAL) {
		return f.createLocked(h, change)
	}
	if err != nil {
		return pathError("create", f.Path(), err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := h.hand(fd, f.Path(), h.fileMode()); err != nil {
		return err
	}
	if err := f.write(fd, fresh(payload), 0); err != nil {
		return err
	}
	err = unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), h.fd, f.Name, unix.AT_SYMLINK_FOLLOW)
	switch {
	case errors.Is(err, unix.EEXIST):
		return errOtherFile
	case errors.Is(err, unix.ENOENT): // no /proc
		return f.createLocked(h, change)
	case err != nil:
		return pathError("create", f.Path(), err)
	}
	return nil
}
