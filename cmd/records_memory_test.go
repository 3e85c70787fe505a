package cmd_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/retryx/retryx/cmd"
)

// A journal of 30 MB, every line a run of its own, is the most that a report has
// to read before it knows which run is meant. It must not hold it all.
func TestReportOfALargeJournal(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc/self/status")
	}
	if raced() {
		t.Skip("the race detector's memory is not ours")
	}
	const size, limit = 30 << 20, 48 << 20
	dir := t.TempDir()
	file := filepath.Join(dir, "outcomes.jsonl")
	writeJournal(t, file, size)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "retryx-peak")
	if err := os.Symlink(self, program); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"report", file}, {"stats", file}, {"history", file}, {"history", "-n", "0", "--format", "json", file}} {
		t.Run(fmt.Sprint(args[:len(args)-1]), func(t *testing.T) {
			c := exec.Command(program, args...)
			c.Env = []string{"PATH=" + dir, "HOME=" + dir, collectEarly}
			if out, err := c.Output(); err != nil || len(out) == 0 {
				t.Fatalf("retryx %v = %d bytes, %v", args, len(out), err)
			}
			text, err := os.ReadFile(filepath.Join(dir, "peak"))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := strconv.Atoi(string(text)); err != nil || got == 0 || got > limit {
				t.Errorf("retryx %v took %d MiB at its peak, want at most %d (%v)", args, got>>20, limit>>20, err)
			}
		})
	}
}

// raced reports whether the race detector is built in.
func raced() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// runMeasured is retryx, but that it leaves the most memory that it had, in
// bytes, in $HOME/peak. What wait(2) says cannot be used: it is never less than
// what the parent had when it forked.
func runMeasured() int {
	code := cmd.Main(cmd.System())
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		panic(err)
	}
	_, rest, _ := bytes.Cut(status, []byte("VmHWM:"))
	var kib int
	if _, err := fmt.Sscan(string(rest), &kib); err != nil {
		panic(err)
	}
	if err := os.WriteFile(filepath.Join(os.Getenv("HOME"), "peak"), []byte(strconv.Itoa(kib<<10)), 0o600); err != nil {
		panic(err)
	}
	return code
}

// writeJournal makes outcomes of that size in all, each of another run.
func writeJournal(t *testing.T, file string, size int) {
	t.Helper()
	var b bytes.Buffer
	filler := strings.Repeat("x", 400) // what a usual outcome holds besides
	for i := 0; b.Len() < size; i++ {
		line, err := json.Marshal(map[string]any{
			"schema": "retryx.outcome/v1", "outcome": "success", "reason": "succeeded", "tool": "curl", "run_id": fmt.Sprintf("run%023d", i),
			"command": []string{"curl", "-fsS", fmt.Sprintf("https://example.com/%d", i)}, "attempt_count": 1, "depth": 0,
			"message": filler, "evidence": filler,
		})
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}
