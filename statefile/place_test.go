package statefile_test

import (
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/retryx/retryx/statefile"
)

func lookup(flag string, uid int, env map[string]string) statefile.Lookup {
	return statefile.Lookup{Flag: flag, UID: uid, Getenv: func(name string) string { return env[name] }}
}

// Property 38: what names the directory, and in which order.
func TestLookupPath(t *testing.T) {
	home, uid := t.TempDir(), os.Geteuid()
	entry, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		t.Skip("this user has no passwd entry: ", err)
	}
	if _, err := os.Stat(entry.HomeDir); err != nil {
		t.Skip("this user has no home: ", err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	const below = ".local/state/retryx"
	tests := []struct {
		name, flag string
		env        map[string]string
		want       string
	}{
		{"flag", "/f", map[string]string{"RETRYX_STATE_DIR": "/e", "XDG_STATE_HOME": "/x", "HOME": home}, "/f"},
		{"environment", "", map[string]string{"RETRYX_STATE_DIR": "/e", "XDG_STATE_HOME": "/x", "HOME": home}, "/e"},
		{"relative", "some/../dir", nil, filepath.Join(here, "dir")},
		{"xdg", "", map[string]string{"XDG_STATE_HOME": "/x", "HOME": home}, "/x/retryx"},
		{"relative xdg is ignored", "", map[string]string{"XDG_STATE_HOME": "x", "HOME": home}, filepath.Join(home, below)},
		{"home", "", map[string]string{"HOME": home}, filepath.Join(home, below)},
		{"no home: cron", "", nil, filepath.Join(entry.HomeDir, below)},
		{"home that does not exist", "", map[string]string{"HOME": "/nonexistent"}, filepath.Join(entry.HomeDir, below)},
		{"relative home", "", map[string]string{"HOME": "."}, filepath.Join(entry.HomeDir, below)},
	}
	for _, tt := range tests {
		if got, err := lookup(tt.flag, uid, tt.env).Path(); err != nil || got != tt.want {
			t.Errorf("%s: Path() = %q, %v, want %q", tt.name, got, err, tt.want)
		}
	}
}

// Under sudo HOME is the caller's: not ours, so the passwd entry says.
func TestLookupForeignHome(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root has somebody else's home")
	}
	home := t.TempDir()
	if err := os.Chown(home, alice, alice); err != nil {
		t.Fatal(err)
	}
	entry, err := user.LookupId("0")
	if err != nil {
		t.Skip("root has no passwd entry: ", err)
	}
	env := map[string]string{"HOME": home}
	want := filepath.Join(entry.HomeDir, ".local/state/retryx")
	if got, err := lookup("", 0, env).Path(); err != nil || got != want {
		t.Errorf("Path() as root with alice's HOME = %q, %v, want %q", got, err, want)
	}
	if got, err := lookup("", alice, env).Path(); err != nil || got != filepath.Join(home, ".local/state/retryx") {
		t.Errorf("Path() as alice = %q, %v, want it in her home", got, err)
	}
	if got, err := lookup("", bob, env).Path(); !errors.Is(err, statefile.ErrNoHome) || !statefile.Unusable(err) {
		t.Errorf("Path() of somebody without a home = %q, %v, want ErrNoHome, unusable", got, err)
	}
}

// The journal is never shared.
func TestLookupPersonal(t *testing.T) {
	home, uid := t.TempDir(), os.Geteuid()
	l := lookup("", uid, map[string]string{"HOME": home})
	standard := filepath.Join(home, ".local/state/retryx")
	mine, shared, open := filepath.Join(home, "mine"), filepath.Join(home, "shared"), filepath.Join(home, "open")
	if err := errors.Join(
		os.Mkdir(mine, 0o700), os.Mkdir(shared, 0o700), os.Mkdir(open, 0o700),
		os.Chmod(shared, 0o770|os.ModeSetgid), os.Chmod(open, 0o777),
	); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{
		mine: mine, filepath.Join(mine, "new"): filepath.Join(mine, "new"), shared: standard, open: standard, standard: standard,
	} {
		if got, err := l.Personal(dir); err != nil || got != want {
			t.Errorf("Personal(%s) = %q, %v, want %q", dir, got, err, want)
		}
	}
	if uid != 0 {
		t.Skip("only root can make directories of others")
	}
	theirs := filepath.Join(home, "theirs")
	if err := errors.Join(os.Mkdir(theirs, 0o700), os.Chown(theirs, alice, alice)); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{theirs, filepath.Join(theirs, "new", "er")} {
		if got, err := l.Personal(dir); err != nil || got != standard {
			t.Errorf("Personal(%s) = %q, %v, want %q", dir, got, err, standard)
		}
	}
}
