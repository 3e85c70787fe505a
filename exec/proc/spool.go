package proc

import (
	"fmt"
	"io"
	"os"
	"sync"
)

// spoolMemory is how much a spool holds before it moves to a file.
const spoolMemory = 1 << 20

// A Spool holds bytes of any amount: up to 1 MiB in memory, more in a temporary
// file that has no name, so that nothing is left behind however we end. The
// zero value is ready. It may be written and read at the same time.
type Spool struct {
	mu     sync.Mutex
	memory []byte
	file   *os.File
	size   int64
	err    error
}

// Write appends b. Once it fails, for want of disk space as a rule, it fails for
// good: a spool with a hole is worth nothing.
func (s *Spool) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, s.err
	}
	if s.file == nil && len(s.memory)+len(b) <= spoolMemory {
		s.memory = append(s.memory, b...)
		s.size += int64(len(b))
		return len(b), nil
	}
	if err := s.writeFile(b); err != nil {
		s.err = fmt.Errorf("write temporary file: %w", err)
		return 0, s.err
	}
	s.size += int64(len(b))
	return len(b), nil
}

func (s *Spool) writeFile(b []byte) error {
	if s.file == nil {
		file, err := unnamedFile()
		if err != nil {
			return err
		}
		s.file = file
		if _, err := file.WriteAt(s.memory, 0); err != nil {
			return err
		}
		s.memory = nil
	}
	_, err := s.file.WriteAt(b, s.size)
	return err
}

// unnamedFile returns a temporary file that is removed already.
func unnamedFile() (*os.File, error) {
	file, err := os.CreateTemp("", "retryx-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// Size returns how many bytes the spool holds.
func (s *Spool) Size() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size
}

// Err returns the error that ended the writing, or nil if all is there.
func (s *Spool) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// ReadAt reads from the offset, as io.ReaderAt says.
func (s *Spool) ReadAt(b []byte, offset int64) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case offset >= s.size:
		return 0, io.EOF
	case s.file != nil:
		n, err := s.file.ReadAt(b[:min(int64(len(b)), s.size-offset)], offset)
		if err == nil && n < len(b) {
			err = io.EOF
		}
		return n, err
	}
	n := copy(b, s.memory[offset:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// WriteTo writes all that the spool holds to w and keeps it.
func (s *Spool) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, io.NewSectionReader(s, 0, s.Size()))
}

// CopyTo writes all that the spool holds to a descriptor that others share,
// with the care that captured output gets: a full pipe is waited for, and an
// error does not end the program. It calls taken after each part of up to 32 KiB
// that its reader took.
func (s *Spool) CopyTo(file *os.File, taken func()) error {
	_, err := s.WriteTo(&watchedWriter{newFileWriter(file), taken})
	return err
}

// watchedWriter tells of each write.
type watchedWriter struct {
	to    *fileWriter
	taken func()
}

func (w *watchedWriter) Write(b []byte) (int, error) {
	n, err := w.to.Write(b)
	w.taken()
	return n, err
}

// Reset empties the spool and clears its error.
func (s *Spool) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file != nil {
		_ = s.file.Close()
	}
	s.memory, s.file, s.size, s.err = nil, nil, 0, nil
}
