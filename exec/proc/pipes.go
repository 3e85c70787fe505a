package proc

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// pipes are the descriptors of one process: the child's 0, 1 and 2, and our
// ends of what is captured.
type pipes struct {
	child    [3]*os.File
	ours     []*os.File // opened by lay for the child; closed once it runs
	out, err *stream
}

// lay opens everything that spec needs. All of it is close-on-exec.
func lay(spec Spec) (*pipes, error) {
	p := &pipes{}
	if err := p.lay(spec); err != nil {
		p.closeChildEnds()
		p.closeOurEnds()
		return nil, err
	}
	return p, nil
}

func (p *pipes) lay(spec Spec) (err error) {
	p.child[0] = spec.Stdin
	if p.out, err = p.sink(1, spec.Stdout); err != nil {
		return err
	}
	if p.err, err = p.sink(2, spec.Stderr); err != nil {
		return err
	}
	return p.fillNull()
}

// sink sets the child's descriptor n and returns the stream if it is captured.
func (p *pipes) sink(n int, s Sink) (*stream, error) {
	if !s.captured() {
		p.child[n] = s.File
		return nil, nil
	}
	r, w, isPty, err := s.open()
	if err != nil {
		return nil, err
	}
	p.child[n] = w
	p.ours = append(p.ours, w)
	return newStream(r, s, isPty), nil
}

// open opens what the child writes to, and our end of it.
func (s Sink) open() (ours, child *os.File, isPty bool, err error) {
	if s.PTY {
		if ours, child, err = openPty(s.File); err == nil {
			return ours, child, true, nil
		}
	}
	ours, child, err = os.Pipe()
	return ours, child, false, err
}

// fillNull puts /dev/null where nothing was asked for.
func (p *pipes) fillNull() error {
	var null *os.File
	for n, file := range p.child {
		if file != nil {
			continue
		}
		if null == nil {
			var err error
			if null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
				return err
			}
			p.ours = append(p.ours, null)
		}
		p.child[n] = null
	}
	return nil
}

func (p *pipes) closeChildEnds() {
	for _, file := range p.ours {
		_ = file.Close()
	}
}

func (p *pipes) closeOurEnds() {
	for _, s := range []*stream{p.out, p.err} {
		if s != nil {
			s.close()
		}
	}
}

// pending returns how many bytes wait in a pipe; 0 if that cannot be told.
func pending(file *os.File) int {
	var n int
	control(file, func(fd int) {
		n, _ = unix.IoctlGetInt(fd, inputQueue)
	})
	return n
}

// readNow reads what is there without waiting. It reports whether that was the
// end; n is 0 if there is nothing now.
func readNow(file *os.File, b []byte) (n int, ended bool) {
	ended = true // unless the file is still open
	control(file, func(fd int) {
		err := ignoreEINTR(func() (err error) {
			n, err = unix.Read(fd, b)
			return err
		})
		n, ended = max(n, 0), n == 0 && err == nil || err != nil && !errors.Is(err, unix.EAGAIN)
	})
	return n, ended
}

// control runs f with the descriptor of a file, which keeps its mode: File.Fd
// would make one that Go opened blocking again.
func control(file *os.File, f func(fd int)) {
	conn, err := file.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) { f(int(fd)) })
}
