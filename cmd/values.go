package cmd

// What values look like. Flags, variables and files are read by the same parsers.

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/retryx/retryx/classify"
)

// longest is where durations saturate: far beyond any run, near enough that
// sums of a few do not overflow.
const longest = 100 * 365 * 24 * time.Hour

func parseToggle(v string) (bool, error) {
	on, err := strconv.ParseBool(v)
	if err != nil {
		return false, fmt.Errorf("want true or false, not %q", v)
	}
	return on, nil
}

func checkChoice(v string, choices []string) error {
	if slices.Contains(choices, v) {
		return nil
	}
	return fmt.Errorf("want %s, not %q%s", orList(choices), v, didYouMean(v, choices))
}

// parseInteger reads a whole number. One that is too large saturates.
func parseInteger(v string, least int64) (int64, error) {
	n, err := strconv.ParseInt(v, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange) && !strings.HasPrefix(v, "-"):
		return math.MaxInt32, nil
	case err != nil:
		return least, fmt.Errorf("want a whole number, not %q", v)
	case n < least:
		return least, fmt.Errorf("must be at least %d, not %d", least, n)
	}
	return min(n, math.MaxInt32), nil
}

func parsePattern(p string) (*regexp.Regexp, error) {
	if p == "" {
		return nil, errors.New("wants a pattern")
	}
	re, err := regexp.Compile(p)
	if err != nil {
		return nil, fmt.Errorf("bad pattern %q: %s", p, regexpProblem(err))
	}
	return re, nil
}

// parseDuration reads a duration with a unit. What is too long to hold
// saturates instead of wrapping.
func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	switch {
	case err != nil && tooLong(s):
		return longest, nil
	case err != nil && isNumber(s) && strings.HasPrefix(s, "-"), err == nil && d < 0:
		return 0, fmt.Errorf("must not be negative, not %q", s)
	case err != nil && isNumber(s):
		return 0, fmt.Errorf("%q has no unit; write %ss for seconds or %sm for minutes", s, s, s)
	case err != nil:
		return 0, fmt.Errorf("want a duration such as 500ms, 30s, 5m or 2h, not %q", s)
	}
	return min(d, longest), nil
}

func isNumber(s string) bool {
	f, err := strconv.ParseFloat(s, 64)
	return err == nil && !math.IsNaN(f) && !math.IsInf(f, 0)
}

// tooLong reports whether s is a well-formed duration of one number and one
// unit whose only fault is its size.
func tooLong(s string) bool {
	digits := strings.TrimRight(s, "nuµmsh")
	if digits == s || digits == "" || strings.Trim(digits, "0123456789.") != "" || strings.Count(digits, ".") > 1 {
		return false
	}
	_, err := time.ParseDuration("1" + s[len(digits):])
	return err == nil
}

// lastSecond is the end of the year 9999, the last one that RFC 3339 can write;
// milliseconds are beyond it.
const lastSecond = 253402300799

// parseDeadline reads an instant: RFC 3339, a duration from now, or Unix
// seconds of at least 10^9.
func parseDeadline(s string, now time.Time) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return t, nil
	}
	if sec, err := strconv.ParseFloat(s, 64); err == nil && sec >= 1e9 && sec <= lastSecond {
		whole, frac := math.Modf(sec)
		return time.Unix(int64(whole), int64(frac*1e9)), nil
	}
	if d, err := parseDuration(s); err == nil {
		return now.Add(d).Round(0), nil // wall time, so that machine sleep counts
	}
	return time.Time{}, fmt.Errorf("want RFC 3339, a duration from now such as 10m, or Unix seconds, not %q", s)
}

// parseSize reads bytes: 4096, 64KiB, 10MB.
func parseSize(s string) (int64, error) {
	units := []struct {
		suffix string
		bytes  int64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}, {"B", 1}, {"", 1}}
	for _, u := range units {
		digits, ok := strings.CutSuffix(s, u.suffix)
		if !ok {
			continue
		}
		if n, err := strconv.ParseInt(digits, 10, 64); err == nil && n >= 0 && n <= math.MaxInt64/u.bytes {
			return n * u.bytes, nil
		}
	}
	return 0, fmt.Errorf("want a size such as 64KiB or 10MiB, not %q", s)
}

func regexpProblem(err error) string {
	return strings.TrimPrefix(err.Error(), "error parsing regexp: ")
}

func parseMultiplier(v string) (float64, error) {
	f, err := strconv.ParseFloat(v, 64)
	switch {
	case err != nil || math.IsNaN(f) || math.IsInf(f, 0):
		return 1, fmt.Errorf("want a number of at least 1, not %q", v)
	case f < 1:
		return 1, fmt.Errorf("must be at least 1, not %s", v)
	}
	return f, nil
}

// parseClasses reads a list of classes with commas between them.
func parseClasses(v string) ([]classify.Class, error) {
	var out []classify.Class
	for name := range strings.SplitSeq(v, ",") {
		name = strings.TrimSpace(name)
		if !slices.Contains(classNames(), name) {
			return nil, fmt.Errorf("unknown class %q; the classes are %s%s", name, strings.Join(classNames(), ", "), didYouMean(name, classNames()))
		}
		out = append(out, classify.Class(name))
	}
	return out, nil
}

func classNames() []string {
	return []string{
		string(classify.Transient), string(classify.Permanent), string(classify.Config), string(classify.Correctable),
		string(classify.Ambiguous), string(classify.Unexpected), string(classify.Unknown),
	}
}

// checkCancelFile refuses what RETRYX_CANCEL_FILE, a list with colons, cannot hold.
func checkCancelFile(path string) error {
	if path == "" || strings.Contains(path, ":") {
		return fmt.Errorf("want a path without a colon, not %q", path)
	}
	return nil
}
