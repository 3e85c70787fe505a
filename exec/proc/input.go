package proc

// What each attempt reads as its stdin. The rules:
//
//   - Nothing is read from our stdin unless a replay was asked for: in a loop
//     like "while read line" the rest of it belongs to somebody else.
//   - A regular file costs nothing to repeat: it is put back to where it stood.
//   - A pipe or socket is the child's to read. Whether a next attempt would
//     still find its input there is told from outside: with no writer left, it
//     counts as used up when it holds less than before the attempt, or when it
//     came to its end during it. An untouched, idle or empty one is not used
//     up, and neither is a terminal, ever.
//   - A replay streams while it keeps: the first attempt waits for nothing. If
//     the input cannot be kept, that attempt gets all of it nevertheless, and
//     it is the next one that cannot be.

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// An InputMode says where an attempt's stdin comes from.
type InputMode int

const (
	// InputAuto rewinds a regular file and hands on anything else as it is.
	InputAuto InputMode = iota
	// InputInherit hands our stdin on as it is, and asks no questions.
	InputInherit
	// InputNull gives an empty stdin.
	InputNull
	// InputReplay gives the same bytes to every attempt.
	InputReplay
)

// ErrInputTooLarge says that the input passed the limit of a replay.
var ErrInputTooLarge = errors.New("input is too large to replay")

// An Input is the stdin of all the attempts of one run. Its methods are for one
// goroutine.
type Input struct {
	file  *os.File
	mode  InputMode
	start int64 // of a regular file that can be rewound, else -1
	begun bool

	before fill // of a pipe or socket, when the attempt began

	replay *replay // nil unless the input is to be kept
	feed   *feed   // of the running attempt
}

// A fill is what is known of a pipe or socket from outside.
type fill struct {
	bytes int
	over  bool // no writer is left
}

// NewInput takes stdin as it stands now. A replay keeps up to limit bytes.
func NewInput(stdin *os.File, mode InputMode, limit int64) *Input {
	in := &Input{file: stdin, mode: mode, start: -1}
	switch mode {
	case InputInherit, InputNull:
	case InputAuto, InputReplay:
		in.start = offset(stdin)
	}
	if mode == InputReplay && in.start < 0 {
		if readable(stdin) {
			in.replay = &replay{stdin: stdin, limit: limit}
		} else {
			in.mode = InputInherit // what cannot be read, the child may find out for itself
		}
	}
	return in
}

// readable reports whether a file can be one's input: it is no directory, and not
// open for writing alone, as nohup's is.
func readable(file *os.File) bool {
	if file == nil {
		return false
	}
	info, err := file.Stat()
	if err != nil || info.IsDir() {
		return false
	}
	flags, err := unix.FcntlInt(file.Fd(), unix.F_GETFL, 0)
	return err == nil && flags&unix.O_ACCMODE != unix.O_WRONLY
}

// Begin prepares the next attempt and returns its stdin for Spec; nil means
// /dev/null. The file stays ours: it must not be closed. Every Begin without an
// error needs an End.
func (in *Input) Begin() (*os.File, error) {
	again := in.begun
	in.begun = true
	switch {
	case in.mode == InputNull || in.file == nil:
		return nil, nil
	case in.replay != nil:
		return in.beginReplay()
	case in.start >= 0 && again:
		if _, err := unix.Seek(int(in.file.Fd()), in.start, unix.SEEK_SET); err != nil {
			return nil, fmt.Errorf("rewind stdin: %w", err)
		}
	case in.mode == InputAuto && isStream(in.file):
		in.before = fillOf(in.file)
	}
	return in.file, nil
}

func (in *Input) beginReplay() (*os.File, error) {
	if in.replay.err != nil {
		return nil, in.replay.err
	}
	feed, err := in.replay.begin()
	if err != nil {
		return nil, fmt.Errorf("replay stdin: %w", err)
	}
	in.feed = feed
	return feed.r, nil
}

// End finishes the attempt: a replay stops feeding it. The error is for a stdin
// that could not be read; that the child did not want all of it is none.
func (in *Input) End() error {
	if in.feed == nil {
		return nil
	}
	in.feed.end()
	in.feed = nil
	return in.replay.readErr
}

// Fed reports whether a replay has read anything at all.
func (in *Input) Fed() bool { return in.replay != nil && in.replay.fed }

// UsedUp reports, after an attempt, that a next one would not find the input
// that this one found.
func (in *Input) UsedUp() bool {
	if in.replay != nil {
		return in.replay.err != nil
	}
	if in.mode != InputAuto || !in.begun || !isStream(in.file) {
		return false
	}
	now := fillOf(in.file)
	wasAtEnd := in.before.over && in.before.bytes == 0
	return now.over && (now.bytes < in.before.bytes || now.bytes == 0 && !wasAtEnd)
}

// Err returns why an input that UsedUp reports cannot be replayed:
// ErrInputTooLarge, or the error of the disk. It is nil when the child took it.
func (in *Input) Err() error {
	if in.replay == nil {
		return nil
	}
	return in.replay.err
}

// isStream reports whether a file is a pipe or a socket.
func isStream(file *os.File) bool {
	if file == nil {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0
}

func fillOf(file *os.File) fill {
	fd := int(file.Fd())
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN | pollClosed}}
	err := ignoreEINTR(func() error {
		_, err := unix.Poll(fds, 0)
		return err
	})
	if err != nil {
		return fill{}
	}
	return fill{
		bytes: pending(file),
		over:  fds[0].Revents&(unix.POLLHUP|pollClosed) != 0,
	}
}
