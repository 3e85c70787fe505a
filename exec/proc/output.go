package proc

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// An Output knows what a failed attempt left in our stdout, and whether that can
// be taken back. Only a regular file that was ours alone to fill may be cut:
// empty and at offset 0 when we started, not opened for append, and not our
// stderr too. Anything else keeps what was written; the caller can say so.
type Output struct {
	file   *os.File
	cut    bool
	before int64 // the offset before the attempt, -1 if the file has none
}

// NewOutput looks at stdout as it is now, before the first attempt.
func NewOutput(stdout, stderr *os.File) *Output {
	return &Output{
		file:   stdout,
		cut:    offset(stdout) == 0 && emptyForUs(stdout) && !sameFile(stdout, stderr),
		before: -1,
	}
}

// Before notes where stdout stands. Call it before each attempt.
func (o *Output) Before() { o.before = offset(o.file) }

// CanCutBack reports whether CutBack is allowed.
func (o *Output) CanCutBack() bool { return o.cut }

// CutBack empties the file for the next attempt. Without the permission to do
// so it does nothing and returns nil.
func (o *Output) CutBack() error {
	if !o.cut {
		return nil
	}
	fd := int(o.file.Fd())
	if err := unix.Ftruncate(fd, 0); err != nil {
		return fmt.Errorf("cut stdout back: %w", err)
	}
	if _, err := unix.Seek(fd, 0, unix.SEEK_SET); err != nil {
		return fmt.Errorf("cut stdout back: %w", err)
	}
	return nil
}

// Partial reports whether the attempt since Before left something in a file that
// cannot be cut back.
func (o *Output) Partial() bool {
	return !o.cut && o.before >= 0 && offset(o.file) != o.before
}

// offset returns where a regular file stands, or -1 for anything else.
func offset(file *os.File) int64 {
	if file == nil {
		return -1
	}
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return -1
	}
	at, err := unix.Seek(int(file.Fd()), 0, unix.SEEK_CUR)
	if err != nil {
		return -1
	}
	return at
}

// emptyForUs reports whether a file is empty and we say where it is written.
func emptyForUs(file *os.File) bool {
	info, err := file.Stat()
	if err != nil || info.Size() != 0 {
		return false
	}
	flags, err := unix.FcntlInt(file.Fd(), unix.F_GETFL, 0)
	return err == nil && flags&unix.O_APPEND == 0 && flags&unix.O_ACCMODE != unix.O_RDONLY
}

func sameFile(a, b *os.File) bool {
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
