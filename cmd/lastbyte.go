package cmd

// Whether a file ends in the middle of a line. A line of ours that follows on an
// unfinished one is hard to find in a log, and what captured stderr ended with
// says nothing of the stdout that went to the same file, as with >log 2>&1.

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// endsMidLine reports whether the byte in front of the place where f is written
// next is no newline. It is not known where f is no regular file, or cannot be
// read. A shell opens a log for writing alone, so that the file has to be opened
// once more by its descriptor's number; Linux does that, other systems refuse.
func endsMidLine(f *os.File) (midLine, known bool) {
	fd := int(f.Fd())
	if !isRegular(fd) {
		return false, false
	}
	file, err := os.Open(fmt.Sprintf("/dev/fd/%d", fd))
	if err != nil {
		return false, false
	}
	defer func() { _ = file.Close() }()
	at, err := writtenNext(f, file)
	if err != nil || at == 0 {
		return false, err == nil
	}
	var last [1]byte
	if _, err := file.ReadAt(last[:], at-1); err != nil {
		return false, false
	}
	return last[0] != '\n', true
}

// writtenNext is where the next write to f goes: to the end of the file when
// that was opened for appending, else to its offset. opened is the file itself.
func writtenNext(f, opened *os.File) (int64, error) {
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err != nil {
		return 0, err
	}
	if flags&unix.O_APPEND != 0 {
		return opened.Seek(0, io.SeekEnd)
	}
	return f.Seek(0, io.SeekCurrent)
}
