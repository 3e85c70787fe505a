package statefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Dir is a state directory. Nothing is opened or made until it is needed.
type Dir struct {
	Path        string // absolute
	AllowRemote bool   // use remote and FUSE filesystems, where locks may not exclude
}

// The permission bits that decide; types of the system's own widths convert.
const (
	groupWrite  = 0o020
	othersWrite = 0o002
	setgid      = 0o2000
)

// groupShared reports whether a mode says that the directory is meant for its
// group: group-writable, and what is made in it belongs to the group.
func groupShared(mode uint32) bool {
	return mode&(groupWrite|setgid) == groupWrite|setgid
}

// Check reports why the directory cannot be used, without making it. A directory
// that does not exist yet is fine.
func (d Dir) Check() error {
	h, err := d.open("", false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	h.close()
	return nil
}

// folder is an open directory that passed the checks.
type folder struct {
	fd     int
	path   string
	uid    int
	gid    int
	shared bool // files belong to the group
}

// open opens the directory, or one of its own directories, and checks both.
func (d Dir) open(sub string, create bool) (*folder, error) {
	top, err := openFolder(unix.AT_FDCWD, d.Path, d.Path, 0)
	if create && errors.Is(err, fs.ErrNotExist) {
		if err := makeAll(d.Path); err != nil {
			return nil, err
		}
		top, err = openFolder(unix.AT_FDCWD, d.Path, d.Path, 0)
	}
	if err != nil || sub == "" {
		return d.vet(top, err)
	}
	defer top.close()
	path := filepath.Join(d.Path, sub)
	leaf, err := openFolder(top.fd, sub, path, unix.O_NOFOLLOW)
	if create && errors.Is(err, fs.ErrNotExist) {
		if err := top.mkdir(sub, path); err != nil {
			return nil, err
		}
		leaf, err = openFolder(top.fd, sub, path, unix.O_NOFOLLOW)
	}
	return d.vet(leaf, err)
}

// vet refuses filesystems whose locks cannot be trusted.
func (d Dir) vet(f *folder, err error) (*folder, error) {
	if err != nil || d.AllowRemote {
		return f, err
	}
	kind, err := remoteKind(f.fd)
	if err != nil {
		f.close()
		return nil, pathError("statfs", f.path, err)
	}
	if kind != "" {
		f.close()
		return nil, &RefusedError{f.path, "is on a remote or FUSE filesystem (" + kind + "), where locks may not exclude; use --budget-store or --allow-remote-state"}
	}
	return f, nil
}

func openFolder(at int, name, path string, flags int) (*folder, error) {
	fd, err := retryInt(func() (int, error) {
		return unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|flags, 0)
	})
	if err != nil {
		return nil, pathError("open", path, err)
	}
	f := &folder{fd: fd, path: path}
	if err := f.check(); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// check decides whose directory it is.
func (f *folder) check() error {
	var st unix.Stat_t
	if err := unix.Fstat(f.fd, &st); err != nil {
		return pathError("stat", f.path, err)
	}
	mode, euid := uint32(st.Mode), os.Geteuid() //nolint:unconvert // narrower on other systems
	f.uid, f.gid = int(st.Uid), int(st.Gid)
	f.shared = groupShared(mode)
	switch {
	case mode&othersWrite != 0:
		return &RefusedError{f.path, "others may write to it; chmod o-w, or name another directory"}
	case f.uid == euid || euid == 0:
	case mode&groupWrite != 0 || f.uid == 0:
		f.shared = true
	default:
		return &RefusedError{f.path, "belongs to somebody else and is not shared with a group"}
	}
	return nil
}

func (f *folder) close() { _ = unix.Close(f.fd) }

// mkdir makes a directory for the same people; that somebody else was faster is
// fine.
func (f *folder) mkdir(name, path string) error {
	err := unix.Mkdirat(f.fd, name, 0o700)
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	if err != nil {
		return pathError("mkdir", path, err)
	}
	fd, err := unix.Openat(f.fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return pathError("open", path, err)
	}
	defer func() { _ = unix.Close(fd) }()
	mode := uint32(0o700)
	if f.shared {
		mode = setgid | 0o770
	}
	return f.hand(fd, path, mode)
}

// hand gives what is open as fd the owner, group and mode that things in this
// directory have, whatever the umask is.
func (f *folder) hand(fd int, path string, mode uint32) error {
	uid, gid := -1, -1
	if os.Geteuid() == 0 && f.uid != 0 {
		uid, gid = f.uid, f.gid
	}
	if f.shared {
		gid = f.gid
	}
	if uid >= 0 || gid >= 0 {
		if err := unix.Fchown(fd, uid, gid); err != nil {
			return pathError("chown", path, err)
		}
	}
	if err := unix.Fchmod(fd, mode); err != nil {
		return pathError("chmod", path, err)
	}
	return nil
}

// fileMode is the mode of files in this directory.
func (f *folder) fileMode() uint32 {
	if f.shared {
		return 0o660
	}
	return 0o600
}

// makeAll makes a directory and those above it, each for its user alone. What
// root makes below somebody's directory belongs to that somebody.
func makeAll(path string) error {
	if _, err := os.Stat(path); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	above := filepath.Dir(path)
	if err := makeAll(above); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}
	return handDown(above, path)
}

func handDown(above, path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return pathError("open", path, err)
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if err := unix.Stat(above, &st); err != nil {
		return pathError("stat", above, err)
	}
	owner := &folder{uid: int(st.Uid), gid: int(st.Gid)}
	return owner.hand(fd, path, 0o700)
}

// retryInt repeats a system call that a signal interrupted.
func retryInt(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
