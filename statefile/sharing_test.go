package statefile_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/retryx/retryx/statefile"
)

// Users and groups that exist nowhere.
const (
	alice, bob, mallory = 60001, 60002, 60003
	team                = 60100
)

func owner(t *testing.T, path string) (uid, gid int, mode os.FileMode) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	st := info.Sys().(*syscall.Stat_t)
	return int(st.Uid), int(st.Gid), info.Mode()
}

// Property 37: root and the owner of a directory use one record in any order, and
// all of it stays the owner's.
func TestRootInSomebodysDirectory(t *testing.T) {
	who := newAs(t)
	for name, order := range map[string][]string{"root first": {"root", "alice", "root"}, "user first": {"alice", "root", "alice"}} {
		t.Run(name, func(t *testing.T) {
			home := filepath.Join(openTemp(t), "home")
			if err := errors.Join(os.Mkdir(home, 0o700), os.Chown(home, alice, alice)); err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(home, ".local", "state", "retryx")
			f := statefile.File{Dir: statefile.Dir{Path: dir}, Sub: "records", Name: "r"}
			for _, user := range order {
				if user == "root" {
					if err := grow(f); err != nil {
						t.Fatalf("root: %v", err)
					}
				} else if out, err := who.run(alice, alice, "append", dir); err != nil {
					t.Fatalf("alice: %v: %s", err, out)
				}
			}
			if c := read(t, f); string(c.Payload) != "xxx" {
				t.Errorf("Read() = %+v, want three changes of one record", c)
			}
			for path := f.Path(); path != filepath.Dir(home); path = filepath.Dir(path) {
				if uid, _, mode := owner(t, path); uid != alice || mode.Perm()&0o077 != 0 {
					t.Errorf("%s belongs to %d with mode %v, want alice's alone", path, uid, mode)
				}
			}
		})
	}
}

// Property 39: in a directory that an administrator shares with a group its
// members share one record; others are turned away and harm nothing.
func TestGroupSharedDirectory(t *testing.T) {
	who := newAs(t)
	for name, adminOwns := range map[string]int{"root's": 0, "a member's": alice} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(openTemp(t), "shared")
			if err := errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, adminOwns, team), os.Chmod(dir, 0o770|os.ModeSetgid)); err != nil {
				t.Fatal(err)
			}
			f := statefile.File{Dir: statefile.Dir{Path: dir}, Sub: "records", Name: "r"}
			for _, uid := range []int{alice, bob, alice} {
				if out, err := who.run(uid, team, "append", dir); err != nil {
					t.Fatalf("member %d: %v: %s", uid, err, out)
				}
			}
			if err := grow(f); err != nil {
				t.Fatalf("root: %v", err)
			}
			if out, err := who.run(bob, team, "append", dir); err != nil {
				t.Fatalf("bob after root: %v: %s", err, out)
			}
			if out, err := who.run(mallory, mallory, "append", dir); err == nil || !strings.Contains(out, "unusable: true") {
				t.Errorf("somebody else: %v: %s, want it unusable", err, out)
			}
			if c := read(t, f); string(c.Payload) != "xxxxx" {
				t.Errorf("Read() = %+v, want five changes of one record", c)
			}
			if _, gid, mode := owner(t, f.Path()); gid != team || mode.Perm() != 0o660 {
				t.Errorf("the record has group %d and mode %v, want the team's, 0660", gid, mode)
			}
		})
	}
}

// In a shared directory a file that is not the group's is refused: its owner alone
// could change it behind the others' backs.
func TestGroupSharedRefusesPrivateFiles(t *testing.T) {
	who := newAs(t)
	dir := filepath.Join(openTemp(t), "shared")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, 0, team), os.Chmod(dir, 0o770|os.ModeSetgid)); err != nil {
		t.Fatal(err)
	}
	f := statefile.File{Dir: statefile.Dir{Path: dir}, Sub: "records", Name: "r"}
	put(t, f, "x")
	for name, spoil := range map[string]func() error{
		"mode":  func() error { return errors.Join(os.Chown(f.Path(), alice, team), os.Chmod(f.Path(), 0o664)) },
		"group": func() error { return errors.Join(os.Chown(f.Path(), alice, bob), os.Chmod(f.Path(), 0o660)) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if out, err := who.run(bob, team, "append", dir); err == nil || !strings.Contains(out, "unusable: true") {
			t.Errorf("%s: %v: %s, want it refused", name, err, out)
		}
	}
}

// Somebody else's private directory is refused even if it can be entered.
func TestForeignDirectory(t *testing.T) {
	who := newAs(t)
	dir := filepath.Join(openTemp(t), "theirs")
	if err := errors.Join(os.Mkdir(dir, 0o755), os.Chown(dir, alice, alice)); err != nil {
		t.Fatal(err)
	}
	if out, err := who.run(bob, bob, "append", dir); err == nil || !strings.Contains(out, "belongs to somebody else") {
		t.Errorf("bob in alice's directory: %v: %s, want a refusal", err, out)
	}
}

// Property 25: no permission and a missing place are unusable, no descriptors
// left is a failure in use.
func TestFailuresOfTheSystem(t *testing.T) {
	who := newAs(t)
	dir := openTemp(t)
	if out, err := who.run(bob, bob, "append", filepath.Join(dir, "state")); err == nil || !strings.Contains(out, "unusable: true") {
		t.Errorf("without permission: %v: %s, want it unusable", err, out)
	}
	if out, err := who.run(0, 0, "starved", filepath.Join(dir, "state")); err == nil || !strings.Contains(out, "unusable: false") {
		t.Errorf("without descriptors: %v: %s, want a failure in use", err, out)
	}
	f := statefile.File{Dir: statefile.Dir{Path: "/proc/nowhere/state"}, Sub: "records", Name: "r"}
	if err := grow(f); !statefile.Unusable(err) {
		t.Errorf("in /proc: %v, want it unusable", err)
	}
}

// Properties 25 and 26 on a disk of 64 KiB: a full disk fails the making of a
// record, not the change of one, and leaves a journal without half a line.
func TestFullDisk(t *testing.T) {
	disk := mount(t, "size=64k")
	f := statefile.File{Dir: statefile.Dir{Path: filepath.Join(disk, "state")}, Sub: "records", Name: "r"}
	j := statefile.Journal{Dir: f.Dir, Name: "j"}
	put(t, f, "x")
	if err := j.Append(t.Context(), 0, []byte(`{"n":1}`)); err != nil {
		t.Fatal(err)
	}
	err := os.WriteFile(filepath.Join(disk, "ballast"), make([]byte, 1<<20), 0o600)
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("filling the disk = %v, want ENOSPC", err)
	}
	for range 100 {
		if err := grow(f); err != nil {
			t.Fatalf("Change() on a full disk = %v, want nil", err)
		}
	}
	other := f
	other.Name = "other"
	if err := grow(other); !errors.Is(err, syscall.ENOSPC) || statefile.Unusable(err) {
		t.Errorf("making a record on a full disk = %v, want ENOSPC, a failure in use", err)
	}
	long := []byte(`{"n":"` + strings.Repeat("2", 100<<10) + `"}`)
	if err := j.Append(t.Context(), 0, long); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Append() on a full disk = %v, want ENOSPC", err)
	}
	if data, err := os.ReadFile(j.Path()); string(data) != "{\"n\":1}\n" {
		t.Errorf("a line that did not fit left %d bytes (%v), want only the line before", len(data), err)
	}
	if err := os.Remove(filepath.Join(disk, "ballast")); err != nil {
		t.Fatal(err)
	}
	if err := j.Append(t.Context(), 0, []byte(`{"n":3}`)); err != nil {
		t.Fatal(err)
	}
	if got, want := lines(t, j), `{"n":1} {"n":3}`; got != want {
		t.Errorf("the journal has %s, want %s", got, want)
	}
}

// Property 25: a read-only disk is unusable for changes and fine for reading.
func TestReadOnlyDisk(t *testing.T) {
	disk := mount(t, "size=64k")
	f := statefile.File{Dir: statefile.Dir{Path: filepath.Join(disk, "state")}, Sub: "records", Name: "r"}
	put(t, f, "x")
	remount(t, disk)
	other := f
	other.Name = "other"
	for _, f := range []statefile.File{f, other} {
		if err := grow(f); !errors.Is(err, syscall.EROFS) || !statefile.Unusable(err) {
			t.Errorf("Change() of %s on a read-only disk = %v, want EROFS, unusable", f.Name, err)
		}
	}
	if c := read(t, f); string(c.Payload) != "x" {
		t.Errorf("Read() = %+v, want x", c)
	}
}

// A sweep removes what nobody wrote for long, unless somebody holds it.
func TestSweep(t *testing.T) {
	f := file(t)
	names := map[string]bool{"old": false, "young": true, "held": true}
	long := time.Now().Add(-8 * 24 * time.Hour)
	for name := range names {
		g := statefile.File{Dir: f.Dir, Sub: f.Sub, Name: name}
		put(t, g, "x")
		if name != "young" {
			if err := os.Chtimes(g.Path(), long, long); err != nil {
				t.Fatal(err)
			}
		}
	}
	release := hold(t, statefile.File{Dir: f.Dir, Sub: f.Sub, Name: "held"})
	f.Dir.Sweep(f.Sub, time.Now().Add(-7*24*time.Hour))
	release()
	left, err := f.Dir.List(f.Sub)
	if got := strings.Join(left, " "); err != nil || got != "held young" {
		t.Errorf("List() after Sweep() = %q, %v, want held young", got, err)
	}
}

// Old files go however many young ones there are. A sweep looks at a part of
// them, so it takes a few.
func TestSweepsReachEveryFile(t *testing.T) {
	f := file(t)
	put(t, f, "x")
	long := time.Now().Add(-8 * 24 * time.Hour)
	for i := range 600 {
		old := filepath.Join(filepath.Dir(f.Path()), strconv.Itoa(i))
		if err := os.WriteFile(old, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			continue
		}
		if err := os.Chtimes(old, long, long); err != nil {
			t.Fatal(err)
		}
	}
	left := 0
	for range 300 { // one of these leaves a file alone once in six times at most
		f.Dir.Sweep(f.Sub, time.Now().Add(-7*24*time.Hour))
		names, err := f.Dir.List(f.Sub)
		if err != nil {
			t.Fatal(err)
		}
		if left = len(names); left == 301 {
			return
		}
	}
	t.Errorf("%d files are left, want the 301 young ones", left)
}

func TestListOfNothing(t *testing.T) {
	f := file(t)
	if names, err := f.Dir.List(f.Sub); len(names) != 0 || err != nil {
		t.Errorf("List() = %q, %v, want nothing", names, err)
	}
	if err := f.Dir.Check(); err != nil {
		t.Errorf("Check() of a directory that does not exist = %v, want nil", err)
	}
	f.Dir.Sweep(f.Sub, time.Now())
	if _, err := os.Lstat(f.Dir.Path); err == nil {
		t.Error("looking made the directory")
	}
}
