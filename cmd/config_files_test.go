package cmd

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

const nobody = 65534

// chown gives a file to somebody else, which only root can do.
func chown(t *testing.T, path string, uid int) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	if err := os.Chown(path, uid, -1); err != nil {
		t.Fatal(err)
	}
}

func TestModesOfFiles(t *testing.T) {
	tests := []struct {
		mode    os.FileMode
		refused bool
	}{
		{0o600, false},
		{0o644, false},
		{0o444, false},
		{0o755, false},
		{0o620, true},
		{0o664, true},
		{0o602, true},
		{0o666, true},
	}
	for _, tt := range tests {
		t.Run(tt.mode.String(), func(t *testing.T) {
			f := newConfigFixture(t)
			for _, path := range []string{f.places.system, f.user(), f.named} {
				f.write(path, "max_attempts: 7\n")
			}
			for _, path := range []string{f.places.system, f.user()} {
				if err := os.Chmod(path, tt.mode); err != nil {
					t.Fatal(err)
				}
				got := f.problems("", "")
				if refused := len(got) == 1 && strings.HasPrefix(got[0], path+": refused: others may write it (mode ") &&
					strings.HasSuffix(got[0], "chmod go-w it"); refused != tt.refused {
					t.Errorf("problems with %s of mode %o = %q, want refused: %v", path, tt.mode, got, tt.refused)
				}
				if err := os.Chmod(path, 0o644); err != nil {
					t.Fatal(err)
				}
				f.write(path, "")
			}
			if err := os.Chmod(f.named, tt.mode); err != nil {
				t.Fatal(err)
			}
			c := f.load(f.named, "")
			if c.values["max_attempts"] != "7" {
				t.Errorf("max_attempts of the named file = %v, want 7: it is read whatever its mode", c.values["max_attempts"])
			}
			if warned := len(c.warnings) == 1 && strings.Contains(c.warnings[0], f.named); warned != tt.refused {
				t.Errorf("warnings about the named file = %q, want one: %v", c.warnings, tt.refused)
			}
		})
	}
}

func TestOwnersOfFiles(t *testing.T) {
	f := newConfigFixture(t)
	f.write(f.user(), "max_attempts: 7\n")
	f.write(f.named, "max_attempts: 8\n")
	chown(t, f.user(), nobody)
	chown(t, f.named, nobody)
	want := []string{f.user() + ": refused: belongs to uid 65534, not to you or root; check what it says, then chown it"}
	if got := f.problems("", ""); !slices.Equal(got, want) {
		t.Errorf("problems = %q, want %q", got, want)
	}
	f.places.uid = nobody // the owner is the effective user
	if c := f.load("", ""); c.values["max_attempts"] != "7" {
		t.Errorf("max_attempts = %v, want the user's own 7", c.values["max_attempts"])
	}
	chown(t, f.user(), 0) // root may write for everybody
	if c := f.load("", ""); c.values["max_attempts"] != "7" {
		t.Errorf("max_attempts = %v, want root's 7", c.values["max_attempts"])
	}
	f.places.uid = 1
	c := f.load(f.named, "")
	if c.values["max_attempts"] != "8" || len(c.warnings) != 1 || !strings.Contains(c.warnings[0], "belongs to uid 65534") {
		t.Errorf("max_attempts, warnings = %v, %q, want 8 of the named file and a warning", c.values["max_attempts"], c.warnings)
	}
}

// TestWhatStandsInAFilesPlace: links are followed, as people keep their files in
// a repository; nothing else but a regular file is read.
func TestWhatStandsInAFilesPlace(t *testing.T) {
	t.Run("a link", func(t *testing.T) {
		f := newConfigFixture(t)
		f.write(f.named, "max_attempts: 7\n")
		f.write(f.user(), "")
		if err := os.Remove(f.user()); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(f.named, f.user()); err != nil {
			t.Fatal(err)
		}
		if c := f.load("", ""); c.values["max_attempts"] != "7" {
			t.Errorf("max_attempts = %v, want 7 through the link", c.values["max_attempts"])
		}
		if err := os.Chmod(f.named, 0o666); err != nil {
			t.Fatal(err)
		}
		if got := f.problems("", ""); len(got) != 1 {
			t.Errorf("problems = %q, want one: others may write what the link leads to", got)
		}
	})
	t.Run("a FIFO", func(t *testing.T) {
		f := newConfigFixture(t)
		if err := os.MkdirAll(filepath.Dir(f.user()), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(f.user(), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, want := f.problems("", ""), []string{f.user() + ": refused: is not a regular file; put a file there"}; !slices.Equal(got, want) {
			t.Errorf("problems = %q, want %q", got, want)
		}
	})
	t.Run("a directory", func(t *testing.T) {
		f := newConfigFixture(t)
		if err := os.MkdirAll(f.user(), 0o700); err != nil {
			t.Fatal(err)
		}
		want := f.user() + ": is a directory; name a file"
		if got := f.problems(f.user(), ""); !slices.Equal(got, []string{want, want}) {
			t.Errorf("problems = %q, want %q twice", got, want)
		}
	})
	t.Run("a file above", func(t *testing.T) {
		f := newConfigFixture(t)
		f.write(filepath.Dir(f.user()), "")
		if got := f.problems("", ""); got != nil {
			t.Errorf("problems = %q, want none: there can be no file", got)
		}
	})
}

func TestSizeOfFiles(t *testing.T) {
	f := newConfigFixture(t)
	f.write(f.user(), "max_attempts: 7\n#"+strings.Repeat("x", largestConfiguration))
	if got := f.problems("", ""); len(got) != 1 || !strings.HasPrefix(got[0], f.user()+": larger than 1048576 bytes") {
		t.Errorf("problems = %q, want one: the file is too large", got)
	}
	f.write(f.user(), "max_attempts: 7\n#"+strings.Repeat("x", largestConfiguration-17))
	if c := f.load("", ""); c.values["max_attempts"] != "7" {
		t.Errorf("max_attempts = %v, want 7: the file is just small enough", c.values["max_attempts"])
	}
}

// TestNothingIsFoundInTheWorkingDirectory: it may belong to anybody.
func TestNothingIsFoundInTheWorkingDirectory(t *testing.T) {
	f := newConfigFixture(t)
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{
		"config.yaml", "retryx.yaml", "retryx.yml", ".retryx.yaml", "retryx/config.yaml", ".retryx/config.yaml",
		".config/retryx/config.yaml", "xdg/retryx/config.yaml", "etc/retryx/config.yaml",
	} {
		f.write(filepath.Join(dir, name), "max_attempts: 99\n")
	}
	for _, environ := range []map[string]string{
		{}, {"HOME": ""}, {"HOME": "."}, {"XDG_CONFIG_HOME": "xdg"}, {"XDG_CONFIG_HOME": "."}, {"HOME": "x/..", "XDG_CONFIG_HOME": ""},
	} {
		f.places.environ = environ
		if c := f.load("", ""); len(c.files) > 0 {
			t.Errorf("load with %v read %q, want nothing", environ, c.files)
		}
	}
	if c := f.load("config.yaml", ""); c.values["max_attempts"] != "99" {
		t.Errorf("max_attempts = %v, want 99 of the file that was named", c.values["max_attempts"])
	}
}

func TestPlaceOfTheUsersFile(t *testing.T) {
	mine, others, entry := t.TempDir(), t.TempDir(), t.TempDir()
	passwd := func(int) string { return entry }
	tests := []struct {
		name    string
		environ map[string]string
		passwd  func(int) string
		want    string
	}{
		{"XDG_CONFIG_HOME", map[string]string{"XDG_CONFIG_HOME": "/x", "HOME": mine}, passwd, "/x/retryx/config.yaml"},
		{"HOME", map[string]string{"HOME": mine}, passwd, mine + "/.config/retryx/config.yaml"},
		{"a relative XDG_CONFIG_HOME", map[string]string{"XDG_CONFIG_HOME": "x", "HOME": mine}, passwd, mine + "/.config/retryx/config.yaml"},
		{"no HOME, as under cron", map[string]string{}, passwd, entry + "/.config/retryx/config.yaml"},
		{"a HOME that is not there", map[string]string{"HOME": "/nonexistent/x"}, passwd, entry + "/.config/retryx/config.yaml"},
		{"somebody else's HOME, as under sudo", map[string]string{"HOME": others}, passwd, entry + "/.config/retryx/config.yaml"},
		{"no home at all", map[string]string{}, func(int) string { return "" }, ""},
		{"a home that is not there", map[string]string{}, func(int) string { return "/nonexistent" }, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.environ["HOME"] == others {
				chown(t, others, nobody)
			}
			p := configPlaces{environ: tt.environ, uid: os.Geteuid(), passwd: tt.passwd}
			if got := p.user(); got != tt.want {
				t.Errorf("user() with %v = %q, want %q", tt.environ, got, tt.want)
			}
		})
	}
}

// BenchmarkNoConfiguration is what every run pays: two failed opens and the
// look at HOME.
func BenchmarkNoConfiguration(b *testing.B) {
	dir := b.TempDir()
	p := configPlaces{system: filepath.Join(dir, "config.yaml"), environ: map[string]string{"HOME": dir}, uid: os.Geteuid()}
	for b.Loop() {
		if _, err := p.load("", ""); err != nil {
			b.Fatal(err)
		}
	}
}
