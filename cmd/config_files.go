package cmd

// Where configuration files stand, and which of them are trusted. A file that
// others could have written decides which commands run as hooks, so one that
// was merely found is refused when it does not belong to root or the effective
// user or when its group or others may write it. One that the user names is
// read with a warning: naming it is the user's decision.

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/retryx/retryx/statefile"
)

// largestConfiguration is far beyond any file written by hand.
const largestConfiguration = 1 << 20

// configPlaces is what decides where configuration files stand.
type configPlaces struct {
	system  string // the machine's file
	environ map[string]string
	uid     int                  // the effective user
	passwd  func(uid int) string // home by the passwd entry; nil asks the system
}

// configPlace is one place of a configuration file.
type configPlace struct {
	path  string
	named bool // by --config or RETRYX_CONFIG, or on the command line
}

// list returns the places in order, the strongest last.
func (p configPlaces) list(explicit string) []configPlace {
	places := []configPlace{{path: p.system}}
	if path := p.user(); path != "" {
		places = append(places, configPlace{path: path})
	}
	if explicit != "" {
		places = append(places, configPlace{path: explicit, named: true})
	}
	return places
}

// user returns the path of the user's file, or nothing for a user without home.
func (p configPlaces) user() string {
	dir := p.environ["XDG_CONFIG_HOME"]
	if !filepath.IsAbs(dir) { // a relative one is invalid by its specification
		home, err := statefile.Lookup{Getenv: p.getenv, UID: p.uid, Passwd: p.passwd}.Home()
		if err != nil {
			return ""
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "retryx", "config.yaml")
}

func (p configPlaces) getenv(name string) string { return p.environ[name] }

// read returns the file's content, nil when there is no file to be found, and
// a warning about a named file that others could have written.
func (p configPlace) read(uid int) (content []byte, warning string, err error) {
	f, err := p.open()
	switch {
	case err != nil && !p.named && isAbsent(err):
		return nil, "", nil
	case err != nil:
		return nil, "", fmt.Errorf("%s: cannot be read: %w%s", p.path, pathCause(err), p.advice(err))
	}
	defer f.Close()
	doubt, err := p.inspect(f, uid)
	if err != nil {
		return nil, "", err
	}
	content, err = io.ReadAll(io.LimitReader(f, largestConfiguration+1))
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("%s: cannot be read: %w", p.path, pathCause(err))
	case len(content) > largestConfiguration:
		return nil, "", fmt.Errorf("%s: larger than %d bytes; a configuration file is small, is this one?", p.path, largestConfiguration)
	case doubt != "":
		return content, fmt.Sprintf("%s: %s; read because it was named", p.path, doubt), nil
	}
	return content, "", nil
}

func (p configPlace) open() (*os.File, error) {
	flags := os.O_RDONLY
	if !p.named {
		flags |= syscall.O_NONBLOCK // a FIFO in the file's place must not hold up the run
	}
	return os.OpenFile(p.path, flags, 0)
}

// inspect returns why an open file is not to be trusted: as an error when it
// was merely found.
func (p configPlace) inspect(f *os.File, uid int) (doubt string, err error) {
	info, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("%s: cannot be read: %w", p.path, pathCause(err))
	}
	if info.IsDir() {
		return "", fmt.Errorf("%s: is a directory; name a file", p.path)
	}
	doubt, remedy := untrusted(info, uid)
	switch {
	case p.named:
		return doubt, nil
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s: refused: is not a regular file; put a file there", p.path)
	case doubt != "":
		return "", fmt.Errorf("%s: refused: %s; check what it says, then %s", p.path, doubt, remedy)
	}
	return "", nil
}

// untrusted says how others could have written a file, and the remedy.
func untrusted(info fs.FileInfo, uid int) (doubt, remedy string) {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case ok && st.Uid != 0 && int(st.Uid) != uid:
		return fmt.Sprintf("belongs to uid %d, not to you or root", st.Uid), "chown it"
	case info.Mode().IsRegular() && info.Mode().Perm()&0o022 != 0:
		return fmt.Sprintf("others may write it (mode %04o)", info.Mode().Perm()), "chmod go-w it"
	}
	return "", ""
}

func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// pathCause leaves out the operation and the path, which the message names already.
func pathCause(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}

// advice says what to do about a file that could not be opened.
func (p configPlace) advice(err error) string {
	switch {
	case isAbsent(err):
		return "; check the path"
	case errors.Is(err, fs.ErrPermission) && !p.named:
		return "; let its readers include you, or remove it"
	}
	return ""
}

// state says in a word or two what stands at a place.
func (p configPlace) state(uid int) string {
	content, warning, err := p.read(uid)
	switch {
	case err != nil:
		return strings.TrimPrefix(err.Error(), p.path+": ")
	case warning != "":
		return strings.TrimPrefix(warning, p.path+": ")
	case content == nil:
		return "no file"
	}
	return "exists"
}
