package proc

// A captured stream is read from a pipe by one goroutine that remembers the
// last TailBytes and passes everything on. Its rules:
//
//   - Bytes go on as they come. Lines are not awaited: a prompt has no newline.
//   - Errors in passing on are remembered, never returned to the child, and
//     reading goes on, else the child would die of SIGPIPE for our reader's
//     sake. A closed reader is not written to again; after any other error the
//     next bytes are tried afresh.
//   - A slow reader slows the child down, as it would without us. Nothing that
//     must react runs in this goroutine.
//   - What the child wrote before its exit is passed on however late the exit
//     of the last holder of the pipe is. What others write after that belongs
//     to no attempt: it is passed on while we live, but not recorded.

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// TailBytes is how much of the end of a captured stream is kept.
const TailBytes = 64 << 10

// ErrStuck is the WriteErr of a stream whose reader accepted nothing for a
// whole WaitDelay after the child's exit.
var ErrStuck = errors.New("reader takes no output")

// A Sink says what the child gets as its stdout or stderr.
//
//   - File alone: the child gets this very descriptor, untouched.
//   - Tee: the child gets a pipe. Bytes are copied to File (nil: nowhere) as
//     they come, and the last TailBytes are kept.
//   - Tee and PTY: as Tee, but what the child gets is a terminal of the size of
//     File; a pipe if the system has none to give.
//   - Spool: as Tee, but the bytes go into the spool.
//   - Nothing: the child gets /dev/null.
type Sink struct {
	File     *os.File
	Tee, PTY bool
	Spool    *Spool
}

func (s Sink) captured() bool { return s.Tee || s.Spool != nil }

// hurryLimit is what is left of a WaitDelay after a Kill, and of a stream that
// lingers at the end.
const hurryLimit = 250 * time.Millisecond

// copyBytes is how much one read takes: half of what a Linux pipe holds.
const copyBytes = 32 << 10

// A stream is one captured pipe.
type stream struct {
	r       *os.File
	pty     bool
	to      *fileWriter   // nil: nowhere
	spool   *Spool        // nil: none
	settled chan struct{} // closed when nothing more will be recorded
	over    chan struct{} // closed when nothing more will be read

	writing atomic.Bool

	mu       sync.Mutex // guards what follows
	tail     tail
	last     byte
	sealed   bool
	leftOpen bool
	err      error
}

// An ending is what a stream has to say when its process is done.
type ending struct {
	tail      []byte
	truncated bool
	leftOpen  bool
	midLine   bool
	err       error
}

func newStream(r *os.File, sink Sink, isPty bool) *stream {
	s := &stream{r: r, pty: isPty, spool: sink.Spool, last: '\n', settled: make(chan struct{}), over: make(chan struct{})}
	if sink.Spool == nil && sink.File != nil {
		s.to = newFileWriter(sink.File)
	}
	return s
}

// run copies until the last writer is gone or close is called.
func (s *stream) run() {
	defer close(s.over)
	defer func() { _ = s.r.Close() }()
	buf := make([]byte, copyBytes)
	for {
		n, err := s.r.Read(buf)
		s.take(buf[:n])
		if err == nil {
			continue
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			if !s.takeBacklog(buf) {
				s.leave()
				break
			}
		}
		close(s.settled)
		return
	}
	close(s.settled)
	s.linger(buf)
}

// takeBacklog reads what is in the pipe and hardly more, and reports whether
// that was all there will ever be. The deadline may have passed while a slow
// reader kept us from bytes that the child wrote itself.
func (s *stream) takeBacklog(buf []byte) (ended bool) {
	for left := pending(s.r); ; {
		n, ended := readNow(s.r, buf)
		if ended {
			return true
		}
		s.take(buf[:n])
		if left -= n; n == 0 || left < 0 {
			return false
		}
	}
}

func (s *stream) leave() {
	s.mu.Lock()
	s.leftOpen = true
	s.mu.Unlock()
}

// linger keeps what others left behind from blocking or dying until close, which
// is a deadline: what was written before it is still passed on.
func (s *stream) linger(buf []byte) {
	if err := s.r.SetReadDeadline(time.Time{}); err != nil {
		return
	}
	for {
		n, err := s.r.Read(buf)
		s.take(buf[:n])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			s.takeBacklog(buf)
		}
		if err != nil {
			return
		}
	}
}

// take records bytes and passes them on. The record comes first: it must not
// wait for the reader.
func (s *stream) take(b []byte) {
	if len(b) == 0 {
		return
	}
	s.record(b)
	if s.to == nil {
		return
	}
	s.writing.Store(true)
	_, err := s.to.Write(b)
	s.writing.Store(false)
	if err != nil {
		s.fail(err)
	}
}

// record keeps what belongs to the attempt. A spool is filled here, under the
// lock: after the seal it may be in use for another attempt.
func (s *stream) record(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sealed {
		return
	}
	s.tail.add(b)
	s.last = b[len(b)-1]
	if s.spool == nil {
		return
	}
	if _, err := s.spool.Write(b); err != nil && s.err == nil {
		s.err = err
	}
}

func (s *stream) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
}

// expect starts the clock: the child is gone, the end should come soon. One that
// lingers already has no deadline any more.
func (s *stream) expect(delay time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.leftOpen {
		_ = s.r.SetReadDeadline(time.Now().Add(delay))
	}
}

// await returns when the stream is settled, or when waiting makes no sense: its
// reader is stuck, or the process was killed and has had its delay.
func (s *stream) await(delay time.Duration, hurry <-chan struct{}, killed func() bool) {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	for {
		seen := s.moved()
		select {
		case <-s.settled:
			return
		case <-hurry: // what has come already is still taken
			hurry, delay = nil, min(delay, hurryLimit)
			s.expect(delay)
			timer.Reset(delay)
		case <-timer.C:
			stuck := s.moved() == seen
			if s.writing.Load() && (stuck || killed()) {
				s.fail(ErrStuck)
				return
			}
			timer.Reset(delay)
		}
	}
}

// moved returns how many bytes were passed on, which tells a slow reader from a
// stuck one.
func (s *stream) moved() int64 {
	if s.to == nil {
		return 0
	}
	return s.to.moved.Load()
}

// seal ends the record and returns it.
func (s *stream) seal() ending {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sealed = true
	bytes, truncated := s.tail.bytes()
	return ending{
		tail:      bytes,
		truncated: truncated,
		leftOpen:  s.leftOpen,
		midLine:   s.last != '\n',
		err:       s.err,
	}
}

// close ends the reading. Of a stream that lingers it takes what is there, if our
// own reader does so in time.
func (s *stream) close() {
	if s.lingers() {
		_ = s.r.SetReadDeadline(time.Now())
		timer := time.NewTimer(hurryLimit)
		defer timer.Stop()
		select {
		case <-s.over:
		case <-timer.C:
		}
	}
	_ = s.r.Close()
}

func (s *stream) lingers() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.over:
		return false
	default:
		return s.leftOpen
	}
}
