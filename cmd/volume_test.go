package cmd_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// Scenarios 51 and 53: any volume passes in order and to the last byte, in memory
// that does not grow with it. RETRYX_STRESS=1 makes it a gigabyte.

const mostMemory = 48 << 20 // bytes, of which the program itself takes some 20 MiB

// collectEarly keeps the pace of the collector out of what is measured. What is
// held is not collected, and shows all the same.
const collectEarly = "GOMEMLIMIT=32MiB"

func volume() int64 {
	if stress() {
		return 1 << 30
	}
	return 40 << 20
}

// measured is retryx in a directory of its own as a program that leaves its peak
// of memory in bytes there.
func measured(t *testing.T, args ...string) (*exec.Cmd, string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc/self/status")
	}
	notIgnored()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "retryx-peak")
	if err := os.Symlink(self, program); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program, args...)
	c.Dir, c.Env = dir, append(surroundings(dir), collectEarly)
	return c, dir
}

// peak checks how much memory it took. The race detector's is not ours.
func peak(t *testing.T, dir string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "peak"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := strconv.Atoi(string(text))
	t.Logf("peak of memory: %d MiB for %d MiB", got>>20, volume()>>20)
	if err != nil || got == 0 || got > mostMemory && !raced() {
		t.Errorf("peak of memory = %d MiB (%v), want at most %d", got>>20, err, mostMemory>>20)
	}
}

// counted checks that r is the numbers from 1 on, a line each, and returns how
// many bytes there were.
func counted(r io.Reader) (int64, error) {
	in := bufio.NewReaderSize(r, 1<<16)
	want := make([]byte, 0, 24)
	total := int64(0)
	for n := int64(1); ; n++ {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return total, nil
		}
		want = append(strconv.AppendInt(want[:0], n, 10), '\n')
		if err != nil || !bytes.Equal(line, want) {
			return total, fmt.Errorf("after %d bytes: %q, %w, want %q", total, line, err, want)
		}
		total += int64(len(line))
	}
}

// seqOf returns up to which number the lines of seq hold at least size bytes,
// and how many bytes those are.
func seqOf(size int64) (last, total int64) {
	for digits, first := int64(2), int64(1); ; digits, first = digits+1, first*10 {
		if whole := digits * 9 * first; total+whole < size {
			total += whole
			continue
		}
		n := (size - total + digits - 1) / digits
		return first + n - 1, total + n*digits
	}
}

func TestVolumeOfStdout(t *testing.T) {
	t.Parallel()
	last, total := seqOf(volume())
	for name, flags := range map[string]string{
		"inherited":   "",
		"captured":    "--capture both",
		"kept back":   "--stdout commit",
		"held":        "-n 1 --hold-output --success-exit 9",
		"all fail":    "-n 3 --stdout last --success-exit 9",
		"of a replay": "--stdin replay --stdin-limit 2GiB",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command := []string{"seq", strconv.FormatInt(last, 10)}
			if name == "of a replay" {
				command = []string{"cat"}
			}
			c, dir := measured(t, append(append(strings.Fields(flags), "--outcome", "out", "--"), command...)...)
			if name == "of a replay" {
				feed := exec.Command("seq", strconv.FormatInt(last, 10))
				in, err := feed.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				c.Stdin = in
				if err := feed.Start(); err != nil {
					t.Fatal(err)
				}
				defer feed.Wait()
			}
			out, err := c.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			got, err := counted(out)
			if err != nil || got != total {
				t.Errorf("stdout has %d bytes in order (%v), want %d", got, err, total)
			}
			_, _ = io.Copy(io.Discard, out) // else one that has more to say would never end
			_ = c.Wait()                    // its status is in the outcome
			(&tree{t: t, dir: dir}).outcome("out", "exit_code=0")
			peak(t, dir)
		})
	}
}

// Not one newline: what reads lines would have to keep it all.
func TestVolumeOfStderr(t *testing.T) {
	t.Parallel()
	size := volume()
	c, dir := measured(t, "-n", "1", "--outcome", "out", "-q", "--", "sh", "-c", fmt.Sprintf("head -c %d /dev/zero >&2; exit 3", size))
	stderr, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	got, err := io.Copy(io.Discard, stderr)
	if err != nil || got != size {
		t.Errorf("stderr has %d bytes (%v), want %d", got, err, size)
	}
	_ = c.Wait() // its status is in the outcome
	(&tree{t: t, dir: dir}).outcome("out", "exit_status=3", "tail_truncated=true")
	peak(t, dir)
}
