package proc

import (
	"os"

	"golang.org/x/sys/unix"
)

// A fileWriter writes to a descriptor that other processes share with us. It
// goes around os.File for two reasons: a broken pipe on 1 or 2 must not end the
// program, and a sibling may switch the descriptor to non-blocking at any time
// (golang/go#58408), which must cost no byte.
type fileWriter struct {
	file   *os.File
	closed bool
}

// Write writes all of b, waiting as long as the reader needs. After the reader
// is gone it reports the whole of b as written, once the error was returned.
func (w *fileWriter) Write(b []byte) (int, error) {
	if w.closed {
		return len(b), nil
	}
	fd := int(w.file.Fd())
	total := 0
	for total < len(b) {
		n, err := unix.Write(fd, b[total:])
		if n > 0 {
			total += n
		}
		switch err {
		case nil, unix.EINTR:
		case unix.EAGAIN:
			awaitWritable(fd)
		default:
			w.closed = err == unix.EPIPE || err == unix.EBADF
			return total, &os.PathError{Op: "write", Path: w.file.Name(), Err: err}
		}
	}
	return total, nil
}

// awaitWritable returns when a write may get on, or will tell what is wrong.
func awaitWritable(fd int) {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
	_ = ignoreEINTR(func() error {
		_, err := unix.Poll(fds, -1)
		return err
	})
}
