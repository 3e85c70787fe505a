package statefile_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/retryx/retryx/statefile"
)

// helperVariable makes the test binary play a part in another process.
const helperVariable = "STATEFILE_TEST_HELPER"

func TestMain(m *testing.M) {
	part := os.Getenv(helperVariable)
	if part == "" {
		os.Exit(m.Run())
	}
	if err := play(part, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		fmt.Fprintln(os.Stderr, "unusable:", statefile.Unusable(err))
		os.Exit(1)
	}
	os.Exit(0)
}

// play does what a helper process does.
func play(part string, args []string) error {
	f := statefile.File{Dir: statefile.Dir{Path: args[0]}, Sub: "records", Name: "r"}
	switch part {
	case "append": // appends a byte to the record
		return grow(f)
	case "starved": // the same without a free descriptor
		limit := syscall.Rlimit{Cur: 0, Max: 0}
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			return err
		}
		return grow(f)
	}
	return fmt.Errorf("no part %q", part)
}

// grow appends a byte to the record.
func grow(f statefile.File) error {
	_, err := f.Change(context.Background(), time.Second, func(c statefile.Content) []byte {
		return append([]byte("x"), c.Payload...)
	})
	return err
}

// as runs a helper as another user; the binary is copied to where anybody may
// run it.
type as struct {
	t      *testing.T
	binary string
}

func newAs(t *testing.T) as {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can play other users")
	}
	data, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Skip("cannot copy the test binary: ", err)
	}
	binary := filepath.Join(openTemp(t), "helper")
	if err := os.WriteFile(binary, data, 0o755); err != nil {
		t.Fatal(err)
	}
	return as{t, binary}
}

// openTemp is a temporary directory that other users can reach.
func openTemp(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "statefile") //nolint:usetesting // t.TempDir lies below a directory that others cannot enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func (a as) run(uid, gid int, part string, args ...string) (string, error) {
	a.t.Helper()
	cmd := exec.CommandContext(a.t.Context(), a.binary, args...)
	cmd.Env = []string{helperVariable + "=" + part, "PATH=/nonexistent"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// file returns a record below a fresh state directory.
func file(t *testing.T) statefile.File {
	t.Helper()
	return statefile.File{Dir: statefile.Dir{Path: filepath.Join(t.TempDir(), "state")}, Sub: "records", Name: "r"}
}

// put writes a payload and returns where a damaged record was copied to.
func put(t *testing.T, f statefile.File, payload string) string {
	t.Helper()
	copied, err := f.Change(t.Context(), time.Second, func(statefile.Content) []byte { return []byte(payload) })
	if err != nil {
		t.Fatalf("Change() = %v, want nil", err)
	}
	return copied
}

func read(t *testing.T, f statefile.File) statefile.Content {
	t.Helper()
	c, err := f.Read()
	if err != nil {
		t.Fatalf("Read() = %v, want nil", err)
	}
	return c
}

func raw(t *testing.T, f statefile.File) []byte {
	t.Helper()
	data, err := os.ReadFile(f.Path())
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func overwrite(t *testing.T, f statefile.File, data []byte) {
	t.Helper()
	if err := os.WriteFile(f.Path(), data, 0o600); err != nil {
		t.Fatal(err)
	}
}
