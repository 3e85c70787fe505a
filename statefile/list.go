package statefile

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// List returns the names in a directory of the state directory, sorted. One that
// does not exist has none.
func (d Dir) List(sub string) ([]string, error) {
	names, err := d.names(sub)
	slices.Sort(names)
	return names, err
}

func (d Dir) names(sub string) ([]string, error) {
	h, err := d.open(sub, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	h.close()
	dir, err := os.Open(filepath.Join(d.Path, sub))
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	return dir.Readdirnames(-1)
}

// sweepMost bounds how many files one sweep looks at.
const sweepMost = 256

// Sweep removes the files of a directory that nobody has written since before.
// Each is removed under its lock and only if it is free; whoever waits for it
// finds that the path names another file, and begins again. It looks at a bounded
// number of files and leaves alone what it cannot remove. Where it begins is left
// to chance: else files that stay would hide those behind them for good.
func (d Dir) Sweep(sub string, before time.Time) {
	names, err := d.names(sub)
	if err != nil || len(names) == 0 {
		return
	}
	h, err := d.open(sub, false)
	if err != nil {
		return
	}
	defer h.close()
	first := rand.IntN(len(names))
	for i := range min(len(names), sweepMost) {
		name := names[(first+i)%len(names)]
		if stale(h, name, before) {
			remove(h, name, before)
		}
	}
}

func stale(h *folder, name string, before time.Time) bool {
	var st unix.Stat_t
	err := unix.Fstatat(h.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return err == nil && time.Unix(st.Mtim.Unix()).Before(before)
}

// remove looks at the age once more when it holds the lock.
func remove(h *folder, name string, before time.Time) {
	fd, id, err := openChecked(h, name, unix.O_RDWR)
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(fd) }()
	if tryLock(fd) != nil {
		return
	}
	defer unlock(fd)
	if _, err := sameFile(h, name, id); err == nil && stale(h, name, before) {
		_ = unix.Unlinkat(h.fd, name, 0)
	}
}
