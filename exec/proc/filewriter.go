package proc

import (
	"bytes"
	"errors"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// pieceBytes is the most that a pipe takes as one (PIPE_BUF on Linux).
const pieceBytes = 4096

// A fileWriter writes to a descriptor that other processes share with us. It
// goes around os.File for two reasons: a broken pipe on 1 or 2 must not end the
// program, and a sibling may switch the descriptor to non-blocking at any time
// (golang/go#58408), which must cost no byte.
//
// It writes in pieces of whole lines where it can, so that lines of parallel
// jobs stay in one piece and a slow reader is seen to make progress. A regular
// file takes any write as one and is never slow, and gets whole buffers: eight
// times the calls would double the time that a gigabyte takes.
type fileWriter struct {
	file    *os.File // keeps fd open
	fd      int
	regular bool
	moved   atomic.Int64 // bytes written so far
	closed  bool         // the reader is gone
}

func newFileWriter(file *os.File) *fileWriter {
	w := &fileWriter{file: file, fd: int(file.Fd())}
	var st unix.Stat_t
	w.regular = unix.Fstat(w.fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG
	return w
}

// Write writes all of b, waiting as long as the reader needs. Once it has
// reported that the reader is gone, it takes everything and does nothing.
func (w *fileWriter) Write(b []byte) (int, error) {
	if w.closed {
		return len(b), nil
	}
	total := 0
	for total < len(b) {
		n, err := unix.Write(w.fd, w.next(b[total:]))
		if n > 0 {
			total += n
			w.moved.Add(int64(n))
		}
		switch {
		case err == nil, errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			awaitWritable(w.fd)
		default:
			w.closed = errors.Is(err, unix.EPIPE) || errors.Is(err, unix.EBADF)
			return total, &os.PathError{Op: "write", Path: w.file.Name(), Err: err}
		}
	}
	return total, nil
}

// next returns what of b to write with one call.
func (w *fileWriter) next(b []byte) []byte {
	if w.regular {
		return b
	}
	return piece(b)
}

// piece returns the first pieceBytes of b at most, up to their last newline.
func piece(b []byte) []byte {
	if len(b) <= pieceBytes {
		return b
	}
	b = b[:pieceBytes]
	if i := bytes.LastIndexByte(b, '\n'); i >= 0 {
		return b[:i+1]
	}
	return b
}

// awaitWritable returns when a write may get on, or will tell what is wrong.
func awaitWritable(fd int) {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
	_ = ignoreEINTR(func() error {
		_, err := unix.Poll(fds, -1)
		return err
	})
}
