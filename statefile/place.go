package statefile

import (
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// Where state lives:
//
//  1. what --state-dir or RETRYX_STATE_DIR says;
//  2. $XDG_STATE_HOME/retryx, when that is an absolute path, as its
//     specification demands;
//  3. .local/state/retryx in the home directory.
//
// HOME says where home is only when it belongs to the effective user: it is
// unset under cron and somebody else's under sudo. Then the passwd entry says.

// Lookup is what the surroundings say about the state directory.
type Lookup struct {
	Flag   string               // --state-dir
	Getenv func(string) string  // os.Getenv
	UID    int                  // the effective user
	Passwd func(uid int) string // home by the passwd entry, "" without one; nil asks the system
}

// Path returns the state directory as an absolute path. It need not exist.
func (l Lookup) Path() (string, error) {
	for _, dir := range []string{l.Flag, l.Getenv("RETRYX_STATE_DIR")} {
		if dir != "" {
			return filepath.Abs(dir)
		}
	}
	return l.Default()
}

// Default returns the state directory that the user has when nobody names one.
func (l Lookup) Default() (string, error) {
	if dir := l.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "retryx"), nil
	}
	home, err := l.Home()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, ".local", "state", "retryx"), nil
}

// Personal returns the directory for what is never shared (journal, hints,
// cancel tokens): dir when it is, or will be made as, the user's own, else the
// user's default one.
func (l Lookup) Personal(dir string) (string, error) {
	var st syscall.Stat_t
	err := syscall.Stat(dir, &st)
	mode := uint32(st.Mode) //nolint:unconvert // narrower on other systems
	mine := err == nil && int(st.Uid) == l.UID && mode&syscall.S_IFMT == syscall.S_IFDIR &&
		!groupShared(mode) && mode&othersWrite == 0
	if mine || err == syscall.ENOENT && l.ownsAncestor(dir) {
		return dir, nil
	}
	return l.Default()
}

// ownsAncestor reports whether a directory that is made at dir will be the
// user's own: root hands what it makes to the owner of the directory above.
func (l Lookup) ownsAncestor(dir string) bool {
	if l.UID != 0 {
		return true
	}
	for dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		var st syscall.Stat_t
		if syscall.Stat(dir, &st) == nil {
			return st.Uid == 0
		}
	}
	return true
}

// Home returns the user's own home directory, which is there, or ErrNoHome.
func (l Lookup) Home() (string, error) {
	home := l.Getenv("HOME")
	if filepath.IsAbs(home) && l.owns(home) {
		return home, nil
	}
	passwd := l.Passwd
	if passwd == nil {
		passwd = passwdHome
	}
	home = passwd(l.UID)
	if !filepath.IsAbs(home) {
		return "", ErrNoHome
	}
	if _, err := os.Stat(home); err != nil {
		return "", ErrNoHome
	}
	return home, nil
}

func passwdHome(uid int) string {
	entry, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		return ""
	}
	return entry.HomeDir
}

func (l Lookup) owns(dir string) bool {
	var st syscall.Stat_t
	return syscall.Stat(dir, &st) == nil && int(st.Uid) == l.UID
}
