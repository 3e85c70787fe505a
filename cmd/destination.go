package cmd

// Where the outcome goes.
//
//   - It must be there before the first attempt: a run whose result cannot be
//     reported does not begin.
//   - A descriptor from outside is ours alone from then on: no child gets it.
//   - Writing it never holds up the end for long and never changes the result.
//     A stderr that takes nothing for stderrPatience gets no outcome; others
//     have readerPatience, anew after each part that they take.
//   - In a file each outcome is one line, appended with one write under a lock.
//     A write that a full disk cut short is taken back.
//
// Descriptors are written to by hand, not through os.File: stderr may be set to
// O_NONBLOCK by anyone who shares it, at any time, and must not be set back.

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	destinationStderr = "stderr"
	destinationNone   = "none"

	stderrPatience = time.Second
	readerPatience = 5 * time.Second

	chunk = stderrLimit // of what a pipe or a terminal is given at once
)

// destination is an open place for one outcome.
type destination struct {
	none     bool
	stderr   bool     // it is our stderr, under whatever name
	limit    int      // of a line, 0: none
	fd       int      // what is written to
	keep     *os.File // whose descriptor fd is, so that it stays open
	regular  bool
	own      bool // opened here: locked, and taken back when cut short
	patience time.Duration
}

// checkDestination reports what is wrong with the text of a destination, before
// anything is opened.
func checkDestination(spec string) error {
	kind, n := parseDestination(spec)
	switch {
	case kind == toStdout:
		return fmt.Errorf("%s belongs to the command; use stderr, fd:N or a file", spec)
	case kind == toDescriptor && n == 0:
		return fmt.Errorf("%s is the command's input; use stderr, fd:N or a file", spec)
	case kind == toDescriptor && n < 0:
		return fmt.Errorf("want fd:N with a number, as in fd:3, not %q", spec)
	case spec == "", strings.HasSuffix(spec, "/"), strings.ContainsRune(spec, 0):
		return fmt.Errorf("want stderr, none, fd:N or a file, not %q", spec)
	}
	return nil
}

type destinationKind int

const (
	toFile destinationKind = iota
	toStderr
	toStdout
	toNone
	toDescriptor
)

// parseDestination reads a destination. The names that systems have for
// descriptors mean them: a shell's >(command) is one. A malformed number is -1.
func parseDestination(spec string) (kind destinationKind, n int) {
	switch spec {
	case destinationStderr, "/dev/stderr":
		return toStderr, 2
	case "stdout", "-", "/dev/stdout":
		return toStdout, 1
	case destinationNone:
		return toNone, 0
	}
	for _, prefix := range [...]string{"fd:", "/dev/fd/", "/proc/self/fd/"} {
		digits, ok := strings.CutPrefix(spec, prefix)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 31)
		switch {
		case err != nil:
			return toDescriptor, -1
		case n == 1:
			return toStdout, 1
		case n == 2:
			return toStderr, 2
		}
		return toDescriptor, int(n)
	}
	return toFile, 0
}

// openDestination opens a place. It is called before the first attempt and
// before anything else opens descriptors. The error says what to do.
func openDestination(spec string, stderr *os.File) (*destination, error) {
	if err := checkDestination(spec); err != nil {
		return nil, err
	}
	kind, n := parseDestination(spec)
	d := &destination{fd: n, patience: readerPatience}
	switch kind {
	case toNone:
		d.none = true
		return d, nil
	case toStderr:
		d.stderr, d.limit, d.patience = true, stderrLimit, stderrPatience
		d.keep, d.fd = stderr, int(stderr.Fd())
	case toDescriptor:
		if err := adopt(n); err != nil {
			return nil, err
		}
	case toFile, toStdout:
		fd, err := openOutcomeFile(spec)
		if err != nil {
			return nil, err
		}
		d.fd, d.own = fd, true
	}
	d.regular = isRegular(d.fd)
	return d, nil
}

// adopt makes an inherited descriptor ours. One that is closed on exec was not
// inherited: it is one of our own.
func adopt(fd int) error {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC != 0 {
		return fmt.Errorf("descriptor %d is not open; open it where retryx is started, as in %d>outcome.json", fd, fd)
	}
	mode, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil || mode&unix.O_ACCMODE == unix.O_RDONLY {
		return fmt.Errorf("descriptor %d is not open for writing; open it as in %d>outcome.json", fd, fd)
	}
	unix.CloseOnExec(fd)
	return nil
}

// openOutcomeFile opens a file for appending. A symlink is followed, as a
// shell's >> does, unless somebody else made it. A FIFO must have its reader.
func openOutcomeFile(path string) (int, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK &&
		st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return -1, fmt.Errorf("%s is a symlink of another user; name a file of yours", path)
	}
	fd, err := retried(func() (int, error) {
		return unix.Open(path, unix.O_WRONLY|unix.O_APPEND|unix.O_CREAT|unix.O_CLOEXEC|unix.O_NOCTTY|unix.O_NONBLOCK, 0o600)
	})
	switch {
	case err == nil:
		return fd, nil
	case errors.Is(err, unix.ENOENT):
		return -1, fmt.Errorf("open %s: its directory does not exist; make it first", path)
	case errors.Is(err, unix.EISDIR):
		return -1, fmt.Errorf("open %s: it is a directory; name a file in it", path)
	case errors.Is(err, unix.ENXIO):
		return -1, fmt.Errorf("open %s: nobody reads it; start its reader first", path)
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM), errors.Is(err, unix.EROFS):
		return -1, fmt.Errorf("open %s: %w; name a file that you may write", path, err)
	}
	return -1, fmt.Errorf("open %s: %w", path, err)
}

func isRegular(fd int) bool {
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG
}

// write writes the outcome and returns when it is written, or when nobody took
// it in time. It is called once.
func (d *destination) write(doc *document) error {
	if d.none {
		return nil
	}
	text := doc.full()
	if d.limit > 0 {
		text = doc.line(d.limit)
	}
	if !d.regular {
		// The usual case, which needs no watching, nor a second thread for it.
		text = text[writeNow(d.fd, text[:min(len(text), chunk)]):]
	}
	if len(text) == 0 {
		return nil
	}
	taken := make(chan struct{}, 1)
	done := make(chan error, 1)
	go func() { done <- d.put(text, taken) }() // a stuck one ends with the process
	timer := time.NewTimer(d.patience)
	defer timer.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-taken:
			timer.Reset(d.patience)
		case <-timer.C:
			return fmt.Errorf("write outcome: nobody took it for %s", d.patience)
		}
	}
}

// put writes text. After each part that a reader took it sends on taken.
func (d *destination) put(text []byte, taken chan<- struct{}) error {
	if d.regular {
		return d.append(text)
	}
	for len(text) > 0 {
		n, err := retried(func() (int, error) { return unix.Write(d.fd, text[:min(len(text), chunk)]) })
		switch {
		case errors.Is(err, unix.EAGAIN):
			if err := d.await(); err != nil {
				return err
			}
		case err != nil:
			return fmt.Errorf("write outcome: %w", err)
		}
		text = text[max(0, n):]
		if n > 0 && len(text) > 0 {
			select {
			case taken <- struct{}{}:
			default:
			}
		}
	}
	return nil
}

// await waits until the descriptor takes more.
func (d *destination) await() error {
	_, err := retried(func() (int, error) {
		return unix.Poll([]unix.PollFd{{Fd: int32(d.fd), Events: unix.POLLOUT}}, -1)
	})
	if err != nil {
		return fmt.Errorf("wait for the reader of the outcome: %w", err)
	}
	return nil
}

// append writes one line to a regular file.
func (d *destination) append(text []byte) error {
	if d.own {
		// A filesystem without locks still appends a single write as a whole.
		if _, err := retried(func() (int, error) { return 0, unix.Flock(d.fd, unix.LOCK_EX) }); err == nil {
			defer unix.Flock(d.fd, unix.LOCK_UN) //nolint:errcheck // closing at exit unlocks as well
		}
	}
	var before unix.Stat_t
	known := unix.Fstat(d.fd, &before) == nil
	n, err := retried(func() (int, error) { return unix.Write(d.fd, text) })
	if err == nil && n < len(text) {
		err = syscall.ENOSPC
	}
	if err == nil {
		return nil
	}
	if n > 0 && d.own && known {
		_ = unix.Ftruncate(d.fd, before.Size) // half a line would spoil the next one as well
	}
	return fmt.Errorf("write outcome: %w", err)
}

// retried calls f again when a signal came in between.
func retried(f func() (int, error)) (int, error) {
	for {
		n, err := f()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
