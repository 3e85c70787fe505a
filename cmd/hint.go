package cmd

// The way back: RETRYX_HINT names a file in a private directory in which the
// child may leave lines for the retryx above it.
//
//	class=CLASS           what kind of failure it was
//	retry_after=30s       how long to wait
//	stop=true             do not retry
//	reason=WORD           why not
//	nested={...}          the outcome of a retryx below, written by itself
//
// The last value of a name wins. At most hintLimit bytes are read, once after
// each attempt, and the file is removed. The file is the child's to write, so
// it is read with care: never through a symlink, never one that somebody else
// owns.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/retryx/retryx/classify"
	"github.com/retryx/retryx/exec"
)

const hintLimit = 4096

// hint is what one attempt said.
type hint struct {
	class      classify.Class
	retryAfter time.Duration
	reason     string
	stop       bool
	nested     *nestedOutcome
	warnings   []string
}

// nestedOutcome is how a retryx below ended.
type nestedOutcome struct {
	Outcome      string `json:"outcome"`
	Reason       string `json:"reason"`
	Class        string `json:"class"`
	RetryAfterMS int64  `json:"retry_after_ms"`
}

// hints reads the hint file of one run. The zero value has none.
type hints struct {
	path string
}

// openHints makes the private directory that hint files of this user live in.
func openHints(stateDir, id string) (hints, error) {
	dir := filepath.Join(stateDir, "hints")
	if err := privateDir(dir); err != nil {
		return hints{}, err
	}
	return hints{path: filepath.Join(dir, id)}, nil
}

// privateDir makes dir, or sees to it that an existing one is ours alone.
func privateDir(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if err == nil || !errors.Is(err, os.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || info.Mode().Perm()&0o077 != 0 || int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("use %s: not a private directory of ours; remove it", dir)
	}
	return nil
}

// take reads what the attempt said and removes it, so that the next attempt
// starts with nothing.
func (h hints) take() hint {
	if h.path == "" {
		return hint{}
	}
	_ = syscall.Unlink(h.path + ordinalSuffix) // an outer retry counts from the start
	f, err := os.OpenFile(h.path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return hint{}
		}
		_ = syscall.Unlink(h.path)
		return hint{warnings: []string{"hint file ignored: " + err.Error()}}
	}
	defer f.Close()
	defer func() { _ = syscall.Unlink(h.path) }()
	if err := ownFile(f); err != nil {
		return hint{warnings: []string{"hint file ignored: " + err.Error()}}
	}
	data, err := io.ReadAll(io.LimitReader(f, hintLimit+1))
	if err != nil {
		return hint{warnings: []string{"hint file ignored: " + err.Error()}}
	}
	return parseHint(data)
}

// ownFile refuses what is not a plain file of ours or of root's: a child under
// sudo writes as root.
func ownFile(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || !info.Mode().IsRegular() || st.Nlink != 1:
		return errors.New("not a plain file")
	case int(st.Uid) != os.Geteuid() && st.Uid != 0:
		return errors.New("owned by somebody else")
	}
	return nil
}

func parseHint(data []byte) hint {
	var h hint
	if len(data) > hintLimit {
		data = data[:hintLimit]
		data = data[:bytes.LastIndexByte(data, '\n')+1] // never half a line
		h.warn("hint file is longer than %d bytes; the rest is ignored", hintLimit)
	}
	for line := range strings.SplitSeq(string(data), "\n") {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok {
			if name != "" {
				h.warn("hint line ignored: %q", name)
			}
			continue
		}
		h.set(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	return h
}

func (h *hint) warn(format string, args ...any) {
	if len(h.warnings) < 4 { // a hint file full of nonsense is one fault, not a hundred
		h.warnings = append(h.warnings, fmt.Sprintf(format, args...))
	}
}

func (h *hint) set(name, value string) {
	switch name {
	case "class":
		if !slices.Contains(classNames(), value) {
			h.warn("hint: unknown class %q", value)
			return
		}
		h.class = classify.Class(value)
	case "retry_after":
		d, err := parseRetryAfter(value)
		if err != nil {
			h.warn("hint: retry_after: %s", err)
			return
		}
		h.retryAfter = d
	case "reason":
		if !wellFormedReason(value) {
			h.warn("hint: reason wants a snake_case word, not %q", value)
			return
		}
		h.reason = value
	case "stop":
		on, err := strconv.ParseBool(value)
		if err != nil {
			h.warn("hint: stop wants true or false, not %q", value)
			return
		}
		h.stop = on
	case "nested":
		var n nestedOutcome
		if json.Unmarshal([]byte(value), &n) != nil || n.Outcome == "" {
			h.warn("hint: nested outcome ignored")
			return
		}
		h.nested = &n
	default:
		h.warn("hint: unknown name %q", name)
	}
}

// parseRetryAfter reads a duration, or seconds as in the HTTP header.
func parseRetryAfter(s string) (time.Duration, error) {
	if sec, err := strconv.ParseFloat(s, 64); err == nil && sec >= 0 {
		return time.Duration(min(sec*float64(time.Second), float64(longest))), nil
	}
	return parseDuration(s)
}

const longestReason = 64

func wellFormedReason(s string) bool {
	if s == "" || len(s) > longestReason || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// stopOrder is what the hint means for the table: an order to stop, or nil. A
// nested refusal or hard failure is not retried outside, and outcome and reason
// are taken over; a nested success cleared any line before it.
func (h hint) stopOrder() *exec.Stop {
	if h.stop {
		reason := exec.StoppedByChild
		if h.reason != "" {
			reason = exec.Reason(h.reason)
		}
		return &exec.Stop{Label: exec.HardFailure, Reason: reason}
	}
	n := h.nested
	if n == nil || !wellFormedReason(n.Reason) {
		return nil
	}
	switch label := exec.Label(n.Outcome); label {
	case exec.HardFailure, exec.Cancelled, exec.Abandoned:
		return &exec.Stop{Label: label, Reason: exec.Reason(n.Reason)}
	case exec.RetryableFailure:
		switch exec.Reason(n.Reason) {
		case exec.BudgetDenied, exec.BudgetUnavailable, exec.CircuitOpen:
			return &exec.Stop{Label: label, Reason: exec.Reason(n.Reason)}
		}
	case exec.Success:
	}
	return nil
}

// statedClass is the class that the hint gives, if any.
func (h hint) statedClass() classify.Class {
	if n := h.nested; n != nil && h.stopOrder() != nil && !h.stop && slices.Contains(classNames(), n.Class) {
		return classify.Class(n.Class)
	}
	return h.class
}

// statedWait is the wait that the hint asks for, 0 for none.
func (h hint) statedWait() time.Duration {
	if n := h.nested; n != nil && exec.Reason(n.Reason) == exec.RetryAfterTooLong && n.RetryAfterMS > 0 {
		return max(h.retryAfter, min(time.Duration(min(n.RetryAfterMS, longest.Milliseconds()))*time.Millisecond, longest))
	}
	return h.retryAfter
}

// tellParent appends our own outcome to the hint file of the retryx above.
func tellParent(path string, o *exec.Outcome) error {
	if path == "" {
		return nil
	}
	n := nestedOutcome{Outcome: string(o.Label), Reason: string(o.Reason)}
	if last := o.Last(); last != nil {
		n.Class = string(last.Verdict.Class)
	}
	n.RetryAfterMS = o.StatedWait.Milliseconds()
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	f, err := openHintFile(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Write(append(append([]byte("nested="), text...), '\n'))
	return err
}

// openHintFile opens a file beside or at a parent's hint file for appending. A
// parent that has left has removed its directory's entry; nothing is made anew
// outside a private directory.
func openHintFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	if err := ownFile(f); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

const ordinalSuffix = ".calls"

// ordinal counts the calls with this hash under one attempt of the parent,
// this one included, from 0. Without a parent's directory it is 0.
func ordinal(hintPath string, call [32]byte) (int, error) {
	if hintPath == "" {
		return 0, nil
	}
	f, err := openHintFile(hintPath + ordinalSuffix)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	// Held for one read and one write; nested calls are few.
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return 0, err
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return 0, err
	}
	n := 0
	for rest := data; len(rest) >= len(call); rest = rest[len(call):] {
		if bytes.Equal(rest[:len(call)], call[:]) {
			n++
		}
	}
	_, err = f.Write(call[:])
	return n, err
}

// sweep removes what processes that outlived their run have written since. A
// plain success does without it.
func (h hints) sweep() {
	if h.path != "" {
		sweep(filepath.Dir(h.path))
	}
}
