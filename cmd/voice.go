package cmd

// How lines of our own get to stderr. Whoever reads it may have stopped: a pipe
// is full, a terminal is held with ^S. The run does not hang with them, as a
// signal must always end it:
//
//   - Without trouble a line is out when Write returns, so that it stands where
//     it belongs between the output of the attempts.
//   - A line that nobody takes for stderrPatience is not waited for any longer,
//     and those after it are not waited for at all until it is out.
//   - What is not out yet is kept in order, up to voiceRoom lines; more of them
//     are dropped, and so is what still waits when retryx ends.

import (
	"bytes"
	"os"
	"time"
)

// voiceRoom is how many lines wait for a reader who has stopped.
const voiceRoom = 64

// voice is stderr for lines of our own. It is for one goroutine.
type voice struct {
	file  *os.File
	lines chan spoken
	taken chan struct{}   // a part of a line has been taken
	stuck <-chan struct{} // closed when the line is out that was waited for in vain; nil: there is none
}

// spoken is one line on its way.
type spoken struct {
	text []byte
	out  chan struct{} // closed when it is out, or cannot get there
}

// Write writes a line, and returns when it is out or nobody takes it. It never
// fails: what becomes of our lines changes nothing about the run.
func (v *voice) Write(line []byte) (int, error) {
	if v.lines == nil {
		v.begin()
	}
	s := spoken{text: bytes.Clone(line), out: make(chan struct{})}
	select {
	case v.lines <- s:
	default:
		return len(line), nil
	}
	if !v.isStuck() {
		v.await(s.out)
	}
	return len(line), nil
}

func (v *voice) begin() {
	v.lines, v.taken = make(chan spoken, voiceRoom), make(chan struct{}, 1)
	to := &destination{fd: int(v.file.Fd()), keep: v.file}
	to.regular = isRegular(to.fd)
	go func() { // a stuck one ends with the process
		for s := range v.lines {
			_ = to.put(s.text, v.taken)
			close(s.out)
		}
	}()
}

func (v *voice) isStuck() bool {
	if v.stuck == nil {
		return false
	}
	select {
	case <-v.stuck:
		v.stuck = nil
		return false
	default:
		return true
	}
}

// await waits for a line for as long as its reader makes progress.
func (v *voice) await(out <-chan struct{}) {
	timer := time.NewTimer(stderrPatience)
	defer timer.Stop()
	for {
		select {
		case <-out:
			return
		case <-v.taken:
			timer.Reset(stderrPatience)
		case <-timer.C:
			v.stuck = out
			return
		}
	}
}
