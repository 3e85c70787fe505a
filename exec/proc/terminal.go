package proc

// Our controlling terminal is asked for by its own name, whatever stdin is: a
// command in a pipe or with redirected streams still belongs to the terminal's
// job, and ^C reaches it.

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Standing is where our process group stands at our controlling terminal.
type Standing string

// The standings.
const (
	NoTerminal Standing = "no terminal"
	Foreground Standing = "foreground" // the terminal listens to our group
	Background Standing = "background" // it listens to another one
)

// Stand finds out where our process group stands.
func Stand() Standing {
	tty, err := openTerminal()
	if err != nil {
		return NoTerminal
	}
	defer func() { _ = tty.Close() }()
	return standing(tty)
}

// A Terminal remembers the modes of our controlling terminal.
type Terminal struct {
	modes unix.Termios
}

// SaveTerminal remembers the terminal's modes as they are before an attempt. It
// returns nil, which is fit for Restore, when we have no terminal or are not in
// its foreground.
func SaveTerminal() *Terminal {
	tty, err := openTerminal()
	if err != nil {
		return nil
	}
	defer func() { _ = tty.Close() }()
	if standing(tty) != Foreground {
		return nil
	}
	modes, err := unix.IoctlGetTermios(int(tty.Fd()), getModes)
	if err != nil {
		return nil
	}
	return &Terminal{modes: *modes}
}

// Restore sets the modes again if they differ, so that a child killed in raw
// mode leaves a usable terminal to the next one. If we are no longer in the
// foreground it leaves the terminal alone: it is somebody else's now, and
// setting it would stop us.
func (t *Terminal) Restore() error {
	if t == nil {
		return nil
	}
	tty, err := openTerminal()
	if err != nil {
		return fmt.Errorf("restore terminal: %w", err)
	}
	defer func() { _ = tty.Close() }()
	if standing(tty) != Foreground {
		return nil
	}
	fd := int(tty.Fd())
	now, err := unix.IoctlGetTermios(fd, getModes)
	if err != nil {
		return fmt.Errorf("restore terminal: %w", err)
	}
	if *now == t.modes {
		return nil
	}
	if err := unix.IoctlSetTermios(fd, setModes, &t.modes); err != nil {
		return fmt.Errorf("restore terminal: %w", err)
	}
	return nil
}

func openTerminal() (*os.File, error) {
	return os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
}

func standing(tty *os.File) Standing {
	switch group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP); {
	case err != nil:
		return NoTerminal
	case group == unix.Getpgrp():
		return Foreground
	}
	return Background
}
