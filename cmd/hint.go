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
// The last value of a name wins, so of a longer file the last hintLimit bytes
// are read, once after each attempt, and the file is removed. The file is the
// child's to write, so it is read with care: never through a symlink, never one
// that somebody else owns.

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

	"github.com/retryx/retryx/budget"
	"github.com/retryx/retryx/classify"
	"github.com/retryx/retryx/exec"
)

const (
	hintLimit = 4096
	hintsDir  = "hints" // in the state directory
)

// hint is what one attempt said.
type hint struct {
	class      classify.Class
	retryAfter time.Duration
	reason     string
	stop       bool
	nested     *nestedOutcome
	told       []string // budgets whose breaker has heard from below
	toldFailed []string // those that have heard of a failure
	warnings   []string
}

// nestedOutcome is how a retryx below ended.
type nestedOutcome struct {
	Outcome      string `json:"outcome"`
	Reason       string `json:"reason"`
	Class        string `json:"class"`
	RetryAfterMS int64  `json:"retry_after_ms"`

	Breakers []string `json:"breakers,omitempty"` // budgets whose breaker has been told
}

// hints reads the hint file of one run. The zero value has none.
type hints struct {
	path string
}

// openHints makes the private directory that hint files of this user live in.
func openHints(stateDir, id string) (hints, error) {
	dir := filepath.Join(stateDir, hintsDir)
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
	if err := ownFile(f, os.Geteuid()); err != nil {
		return hint{warnings: []string{"hint file ignored: " + err.Error()}}
	}
	data, cut, err := readEnd(f, hintLimit)
	if err != nil {
		return hint{warnings: []string{"hint file ignored: " + err.Error()}}
	}
	return parseHint(data, cut)
}

// clear removes what hooks and late processes have written since the last
// attempt was read, so that it never speaks for the next one.
func (h hints) clear() {
	if h.path != "" {
		_ = syscall.Unlink(h.path)
		_ = syscall.Unlink(h.path + ordinalSuffix)
	}
}

// readEnd returns the last lines of f, as many as fit into limit bytes, and
// whether there were more.
func readEnd(f *os.File, limit int64) (data []byte, cut bool, err error) {
	info, err := f.Stat()
	if err != nil {
		return nil, false, err
	}
	from := max(0, info.Size()-limit)
	data, err = io.ReadAll(io.NewSectionReader(f, max(0, from-1), min(limit+1, info.Size())))
	if err != nil || from == 0 {
		return data, false, err
	}
	_, data, _ = bytes.Cut(data, []byte("\n")) // never half a line
	return data, true, nil
}

// ownFile refuses what is not a plain file of the owner of its directory, of
// ours or of root's: a child under sudo writes as root.
func ownFile(f *os.File, owner int) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || !info.Mode().IsRegular() || st.Nlink != 1:
		return errors.New("not a plain file")
	case int(st.Uid) != owner && int(st.Uid) != os.Geteuid() && st.Uid != 0:
		return errors.New("owned by somebody else")
	}
	return nil
}

func parseHint(data []byte, cut bool) hint {
	var h hint
	if cut {
		h.warn("hint file is longer than %d bytes; only its end is read", hintLimit)
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
		if json.Unmarshal([]byte(value), &n) != nil || !slices.Contains(labels(), n.Outcome) {
			h.warn("hint: nested outcome ignored")
			return
		}
		h.nested = &n
		for _, name := range n.Breakers {
			if _, err := budget.ParseName(name); err != nil {
				continue
			}
			h.told = append(h.told, name)
			if exec.Label(n.Outcome) != exec.Success {
				h.toldFailed = append(h.toldFailed, name)
			}
		}
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

// forgetOurEnd drops what a retryx below says about the signal by which we ended
// an attempt that took too long: nobody cancelled, it was a limit of ours.
func (h *hint) forgetOurEnd() {
	if n := h.nested; n != nil && exec.Label(n.Outcome) == exec.Cancelled && exec.Reason(n.Reason) == exec.BySignal {
		h.nested = nil
	}
}

// stopOrder is what the hint means for the table: an order to stop, or nil. A
// nested refusal or hard failure is not retried outside, and outcome and reason
// are taken over; a nested success cleared any line before it.
func (h *hint) stopOrder() *exec.Stop {
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
	stop := &exec.Stop{Label: exec.Label(n.Outcome), Reason: exec.Reason(n.Reason)}
	if !stop.Final() {
		return nil
	}
	return stop
}

// takenOver is the class of a retryx below whose outcome stops this one, "" when
// that has none.
func (h *hint) takenOver() (class classify.Class, ok bool) {
	if h.nested == nil || h.stop || h.stopOrder() == nil {
		return "", false
	}
	if slices.Contains(classNames(), h.nested.Class) {
		class = classify.Class(h.nested.Class)
	}
	return class, true
}

// statedWait is the wait that the hint asks for, 0 for none.
func (h *hint) statedWait() time.Duration {
	if n := h.nested; n != nil && exec.Reason(n.Reason) == exec.RetryAfterTooLong && n.RetryAfterMS > 0 {
		return max(h.retryAfter, min(time.Duration(min(n.RetryAfterMS, longest.Milliseconds()))*time.Millisecond, longest))
	}
	return h.retryAfter
}

// sweep removes what processes that outlived their run have written since. A
// plain success does without it.
func (h hints) sweep() {
	if h.path != "" {
		sweep(filepath.Dir(h.path))
	}
}
