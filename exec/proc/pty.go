package proc

// A captured stream that is a terminal for the child, so that colours, widths
// and progress bars stay as they are without us.
//
//   - It is a terminal to ask questions of, not a controlling one: signals and
//     job control stay with the real terminal.
//   - Bytes pass unchanged: output processing is off, the real terminal does it.
//   - Its size is that of the real one.
//   - The end shows as EIO, which counts as the end like any other.

import (
	"os"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// openPty returns our side of a new pseudo-terminal, which can be waited for
// with deadlines, and the child's.
func openPty(like *os.File) (ours, child *os.File, err error) {
	master, child, err := pty.Open()
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = master.Close() }()
	ours, err = pollable(master)
	if err == nil {
		err = plain(child)
	}
	if err != nil {
		_ = child.Close()
		if ours != nil {
			_ = ours.Close()
		}
		return nil, nil, err
	}
	copySize(ours, like)
	return ours, child, nil
}

// pollable returns a file for the same pseudo-terminal whose reads heed
// deadlines: the pty package has made its own blocking.
func pollable(master *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(master.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	file := os.NewFile(uintptr(fd), master.Name())
	if err := file.SetReadDeadline(time.Time{}); err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// plain turns off what would change bytes on their way or send them back.
func plain(tty *os.File) error {
	fd := int(tty.Fd())
	modes, err := unix.IoctlGetTermios(fd, getModes)
	if err != nil {
		return err
	}
	modes.Oflag &^= unix.OPOST
	modes.Lflag &^= unix.ECHO
	return unix.IoctlSetTermios(fd, setModes, modes)
}

// copySize gives ours the window size of a terminal, if that has one.
func copySize(ours, like *os.File) {
	if like == nil {
		return
	}
	size, err := unix.IoctlGetWinsize(int(like.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return
	}
	control(ours, func(fd int) { _ = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, size) })
}

// Resize tells the child's pseudo-terminals the size that the real ones have
// now. Call it at SIGWINCH; without a pseudo-terminal it does nothing.
func (p *Process) Resize() {
	for _, s := range p.streams() {
		if s.pty && s.to != nil {
			copySize(s.r, s.to.file)
		}
	}
}
