package proc

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// A replay keeps what was read from stdin so far, and reads on where the
// attempts before have not come to. Its fields belong to the running feed, and
// to the caller between feeds.
type replay struct {
	stdin   *os.File
	limit   int64
	kept    Spool
	fed     bool // something has come
	atEnd   bool
	err     error // why the input cannot be given again
	readErr error // why stdin ended early
}

// A feed gives one attempt its stdin. It reads ahead of the child by no more
// than a pipe and one buffer hold.
type feed struct {
	*replay
	r, w *os.File // the child's pipe
	wake *os.File // closed to wake the feed from its wait for stdin
	wait *os.File // the other end of wake
	done chan struct{}
}

func (p *replay) begin() (*feed, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	wait, wake, err := os.Pipe()
	if err != nil {
		_ = r.Close()
		_ = w.Close()
		return nil, err
	}
	f := &feed{replay: p, r: r, w: w, wait: wait, wake: wake, done: make(chan struct{})}
	go f.run()
	return f, nil
}

// end stops the feed, wherever it is, and returns when it has stopped.
func (f *feed) end() {
	_ = f.w.Close()
	_ = f.wake.Close()
	<-f.done
	_ = f.r.Close()
	_ = f.wait.Close()
}

// run gives what is kept, and then what comes. A child that takes no more shows
// as an error of the write, and is no failure.
func (f *feed) run() {
	defer close(f.done)
	defer func() { _ = f.w.Close() }()
	buf := make([]byte, copyBytes)
	for at := int64(0); ; {
		n, err := f.kept.ReadAt(buf, at)
		if err != nil && !errors.Is(err, io.EOF) {
			f.err = err
			return
		}
		if n == 0 {
			if n = f.next(buf); n == 0 {
				return
			}
		}
		at += int64(n)
		if _, err := f.w.Write(buf[:n]); err != nil {
			return
		}
	}
}

// next reads from stdin and keeps it; 0 is the end, or that of the attempt.
func (f *feed) next(buf []byte) int {
	if f.atEnd {
		return 0
	}
	n := f.read(buf)
	if n == 0 || f.err != nil {
		return n
	}
	if f.kept.Size()+int64(n) > f.limit {
		f.err = ErrInputTooLarge
	} else if _, err := f.kept.Write(buf[:n]); err != nil {
		f.err = err
	}
	if f.err != nil {
		f.kept.Reset()
	}
	return n
}

// read waits for stdin or for the attempt's end, whichever comes first.
func (f *feed) read(buf []byte) int {
	fd, wake := int(f.stdin.Fd()), int(f.wait.Fd())
	for {
		fds := []unix.PollFd{{Fd: int32(wake), Events: unix.POLLIN}, {Fd: int32(fd), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); errors.Is(err, unix.EINTR) {
			continue
		}
		if fds[0].Revents != 0 {
			return 0
		}
		n, err := unix.Read(fd, buf)
		switch {
		case n > 0:
			f.fed = true
			return n
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
			continue
		case err != nil:
			f.readErr = &os.PathError{Op: "read", Path: f.stdin.Name(), Err: err}
		}
		f.atEnd = true
		return 0
	}
}
