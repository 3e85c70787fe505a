// Package sample is what the bench programs share: series of durations, their
// quantiles, and processes with what they used.
package sample

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// A Series is one measurement, repeated.
type Series []time.Duration

// At returns the quantile q in [0,1] by nearest rank: a value that was measured.
// It returns 0 for an empty series.
func (s Series) At(q float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	i := int(q*float64(len(sorted))+0.999999) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// Median returns the quantile 0.5.
func (s Series) Median() time.Duration { return s.At(0.5) }

// Ratios returns a's values over b's, round by round, in ascending order: each
// pair was measured one right after the other, so that what else the machine did
// bears on both.
func Ratios(a, b Series) []float64 {
	ratios := make([]float64, 0, len(a))
	for i := range min(len(a), len(b)) {
		if b[i] > 0 {
			ratios = append(ratios, float64(a[i])/float64(b[i]))
		}
	}
	slices.Sort(ratios)
	return ratios
}

// MS returns d in milliseconds with two decimals.
func MS(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond)) }

// Mark returns "ok" or "MISSED", the word for a target.
func Mark(ok bool) string {
	if ok {
		return "ok"
	}
	return "MISSED"
}

// A Run is one process that has ended.
type Run struct {
	Wall time.Duration // from before its start until it was reaped
	CPU  time.Duration // its own and that of its reaped children
	Peak int64         // its largest resident set, bytes; never less than ours when it was forked
	Err  error         // of its end
}

// Measure runs cmd to its end.
func Measure(cmd *exec.Cmd) Run {
	begin := time.Now()
	err := cmd.Run()
	r := Run{Wall: time.Since(begin), Err: err}
	if cmd.ProcessState == nil {
		return r
	}
	r.CPU = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		r.Peak = Peak(usage)
	}
	return r
}

// Peak returns the largest resident set of a process that has ended, in bytes. On
// Linux that of the process that started it counts too, so it is to be small.
func Peak(usage *syscall.Rusage) int64 {
	if runtime.GOOS == "darwin" {
		return usage.Maxrss
	}
	return usage.Maxrss << 10 // kilobytes everywhere else
}

// MiB returns bytes in mebibytes with one decimal.
func MiB(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// Self returns the path of the running program, which the bench programs start
// again as the child to be measured.
func Self() (string, error) { return os.Executable() }
