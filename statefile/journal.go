package statefile

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// A journal obeys these rules:
//
//   - A line is one write, under the lock of the file.
//   - A line that was torn (its writer was killed, the disk was full) ends where
//     it ends: the next one starts on a line of its own, and readers skip it.
//   - When a line would make the file too long, the file becomes NAME.1, in place
//     of an earlier one, under its lock; whoever waited for the lock begins again
//     with the new file.

// Journal is a file of JSON lines that only grows at its end.
type Journal struct {
	Dir   Dir
	Name  string
	Limit int64 // bytes after which the file is rotated; 0: never
}

// Path returns where the journal is.
func (j Journal) Path() string { return filepath.Join(j.Dir.Path, j.Name) }

// Append writes one line, which must not contain a newline. It waits for the
// lock at most for wait, and not past the end of ctx, but always tries once. On
// an error nothing of the line is kept, as far as the filesystem allows.
func (j Journal) Append(ctx context.Context, wait time.Duration, line []byte) error {
	if bytes.IndexByte(line, '\n') >= 0 {
		return pathError("append", j.Path(), errors.New("line contains a newline"))
	}
	h, err := j.Dir.open("", true)
	if err != nil {
		return err
	}
	defer h.close()
	for range 1 + maxReopen {
		err = j.attempt(ctx, h, wait, line)
		if !errors.Is(err, errOtherFile) {
			return err
		}
	}
	return pathError("append", j.Path(), ErrReplaced)
}

func (j Journal) attempt(ctx context.Context, h *folder, wait time.Duration, line []byte) error {
	fd, id, err := openChecked(h, j.Name, unix.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) {
		fd, id, err = createPlain(h, j.Name)
		if errors.Is(err, fs.ErrExist) {
			return errOtherFile
		}
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if err := lock(ctx, fd, wait); err != nil {
		return pathError("lock", j.Path(), err)
	}
	defer unlock(fd)
	size, err := sameFile(h, j.Name, id)
	if err != nil {
		return err
	}
	if j.Limit > 0 && size > 0 && size+int64(len(line))+1 > j.Limit {
		return j.rotate(h)
	}
	return j.write(fd, size, line)
}

// rotate moves the file aside; errOtherFile makes the caller begin again.
func (j Journal) rotate(h *folder) error {
	if err := unix.Renameat(h.fd, j.Name, h.fd, j.Name+".1"); err != nil {
		return pathError("rotate", j.Path(), err)
	}
	return errOtherFile
}

func (j Journal) write(fd int, size int64, line []byte) error {
	data := make([]byte, 0, len(line)+2)
	if size > 0 {
		last := make([]byte, 1)
		if n, err := unix.Pread(fd, last, size-1); err != nil {
			return pathError("read", j.Path(), err)
		} else if n == 1 && last[0] != '\n' {
			data = append(data, '\n')
		}
	}
	data = append(append(data, line...), '\n')
	if err := writeAll(fd, data, size); err != nil {
		_ = unix.Ftruncate(fd, size)
		return pathError("append", j.Path(), err)
	}
	return nil
}

// writeAll goes on after a short write, if only to learn why it was short.
func writeAll(fd int, data []byte, offset int64) error {
	for len(data) > 0 {
		n, err := retryInt(func() (int, error) { return unix.Pwrite(fd, data, offset) })
		if err != nil {
			return err
		}
		data, offset = data[n:], offset+int64(n)
	}
	return nil
}

// Each calls fn for every line, oldest first, until it returns false. A journal
// that does not exist has no lines.
func (j Journal) Each(fn func(line []byte) bool) error { return j.each(fn, true) }

// EachSinceRotation is Each without what a rotation moved aside: its lines only
// ever become more, until all are gone at once.
func (j Journal) EachSinceRotation(fn func(line []byte) bool) error { return j.each(fn, false) }

func (j Journal) each(fn func(line []byte) bool, rotated bool) error {
	h, err := j.Dir.open("", false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer h.close()
	// The current file first: a rotation in between then shows a file twice, which
	// is noticed, instead of not at all.
	current, err := j.openFile(h, j.Name)
	if err != nil {
		return err
	}
	defer closeFile(current)
	var older *os.File
	if rotated {
		if older, err = j.openFile(h, j.Name+".1"); err != nil {
			return err
		}
		defer closeFile(older)
	}
	stop := false
	for _, file := range distinct(older, current) {
		err := EachLine(file, func(line []byte) bool {
			stop = !fn(line)
			return !stop
		})
		if err != nil || stop {
			return err
		}
	}
	return nil
}

func (j Journal) openFile(h *folder, name string) (*os.File, error) {
	fd, _, err := openChecked(h, name, unix.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

func closeFile(file *os.File) {
	if file != nil {
		_ = file.Close()
	}
}

// distinct leaves out files that are not there and a file that is there twice.
func distinct(older, current *os.File) []*os.File {
	var files []*os.File
	if older != nil && !same(older, current) {
		files = append(files, older)
	}
	if current != nil {
		files = append(files, current)
	}
	return files
}

func same(a, b *os.File) bool {
	if a == nil || b == nil {
		return false
	}
	one, err := a.Stat()
	if err != nil {
		return false
	}
	other, err := b.Stat()
	return err == nil && os.SameFile(one, other)
}

// longestLine bounds the memory that a line takes; longer ones are skipped.
const longestLine = 4 << 20

// EachLine calls fn for every line of r that is a whole JSON value, until it
// returns false. Torn, empty and invalid lines are skipped. The line is fn's only
// until it returns.
func EachLine(r io.Reader, fn func(line []byte) bool) error {
	lines := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := readLine(lines)
		last := errors.Is(err, io.EOF)
		if err != nil && !last {
			return err
		}
		if len(line) > 0 && json.Valid(line) && !fn(line) || last {
			return nil
		}
	}
}

// readLine returns a line without its end; nil for one that is too long.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	tooLong := false
	for {
		part, err := r.ReadSlice('\n')
		if tooLong = tooLong || len(line)+len(part) > longestLine; tooLong {
			line = nil
		} else {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimSpace(line), err
		}
	}
}
