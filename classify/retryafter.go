package classify

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/retryx/retryx/classify/internal/ruleset"
)

// A wait counts as stated when the other side asks for it: a header, a field of
// an error, or a sentence such as "try again in 18.6s". A client that tells of
// its own plans ("Retrying in 35 seconds") or prints its settings
// ("retry_delay=600") states nothing, and neither does what will be over some
// day ("the certificate expires in 45 days"). The last statement of the output
// counts.

// maxStated bounds what is believed, so that no arithmetic overflows.
const maxStated = 366 * 24 * time.Hour

const (
	// quantity is a number with a unit, or several: 18.6s, 1h 2m, 6m0s.
	quantity = `((?:\d+(?:,\d{3})*(?:[.,]\d+)?['"]?\s*(?:milliseconds?|millis|msecs?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)\b\s*(?:,|and)?\s*|\d+[hm](?:\d+[ms])*(?:\d+(?:\.\d+)?s)?\s*)+)`
	quote    = `["'\\]*`
)

// statement is one way to state a wait; unit is the meaning of a bare number.
type statement struct {
	pattern ruleset.Expression
	read    func(value string, t *text, line int, now time.Time) (time.Duration, bool)
}

// statements is a function so that nothing is compiled before it is needed.
func statements() []statement {
	return []statement{
		{literalPattern(`retry-after-ms`+quote+`\s*[:=]\s*`+quote+`(\d+(?:\.\d+)?)`, "retry-after-ms"), inUnits(time.Millisecond)},
		{literalPattern(`retry-?after(?:-?(?:secs|seconds))?`+quote+`\s*[:=]\s*`+quote+`(\d+(?:\.\d+)?)`+quote+`\s*(?:,|}|\]|\)|;|$|\s)`, "retry-after", "retryafter"), inUnits(time.Second)},
		{literalPattern(`retry-after`+quote+`\s*[:=]\s*`+quote+`((?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? [^"'\\]{10,32}(?:gmt|utc|\d{4}))`, "retry-after"), asDate},
		{literalPattern(`retry_?after_?(?:ms|millis|milliseconds)`+quote+`\s*[:=]\s*`+quote+`(\d+(?:\.\d+)?)`, "retry_after", "retryafter"), inUnits(time.Millisecond)},
		{literalPattern(`retry_?(?:after|in)(?:_?(?:s|sec|secs|seconds))?`+quote+`\s*[:=]\s*`+quote+`(\d+(?:\.\d+)?)`+quote+`\s*(?:,|}|\]|\)|;|$|\s)`, "retry"), inUnits(time.Second)},
		{literalPattern(`retry_?-?(?:delay`+quote+`\s*:|(?:after|in)`+quote+`\s*[:=])\s*`+quote+quantity, "retry"), asQuantity},
		{literalPattern(`x-ratelimit-reset-after`+quote+`\s*[:=]\s*`+quote+`(\d+(?:\.\d+)?)`, "reset-after"), inUnits(time.Second)},
		{literalPattern(`(?:try|retry)(?: (?:again|this|the|your|request|requests|operation|it|call|message|please))* (?:in|after)(?: about| approximately| at least)? ['"]?`+quantity, "retry", "try again", "try after", "try in"), asQuantity},
		{literalPattern(`(?:wait|waiting)(?: for)?(?: about| at least| another)? `+quantity+`(?:before|and (?:try|retry)|then|until|to )`, "wait"), asQuantity},
		{literalPattern(`(?:(?:available again|expected (?:to be )?available|(?:resets?|lifted|refill\w*)(?: again)?) in|time to availability:) `+quantity, "available again", "expected", "availability", "reset", "lifted", "refill"), asQuantity},
		{literalPattern(`a wait of (\d+) seconds is required`, "a wait of"), inUnits(time.Second)},
		{literalPattern(`flood_(?:premium_)?wait_(\d+)`, "flood_"), inUnits(time.Second)},
		{literalPattern(`(?:retry|try again) after (\d{4}-\d\d-\d\d[t ]\d\d:\d\d:\d\d(?:\.\d+)?\s?(?:z|utc|gmt|[+-]\d\d:?\d\d)?)`, "retry after", "try again after"), asTimestamp},
	}
}

func literalPattern(expr string, need ...string) ruleset.Expression {
	return ruleset.Expression{Expr: expr, Need: [][]string{need}}
}

// statedWait finds the wait that an output states. now is when it was written,
// for waits stated as a date without a Date header beside it; with a zero now
// such dates are not understood. Waits of zero and in the past are none.
func statedWait(t *text, now time.Time) (time.Duration, bool) {
	var wait time.Duration
	at := -1
	for _, s := range statements() {
		if d, line := s.last(t, now); line > at {
			wait, at = d, line
		}
	}
	return wait, at >= 0
}

// last returns the wait of the last line that makes the statement, and the
// line, -1 for none.
func (s *statement) last(t *text, now time.Time) (time.Duration, int) {
	var re *regexp.Regexp
	for _, i := range t.candidates(s.pattern.Need, maxTried) {
		if re == nil {
			re, _ = ruleset.Compile(s.pattern.Expr)
		}
		line := t.line(i)
		for _, m := range slices.Backward(re.FindAllStringSubmatchIndex(line, -1)) {
			if d, ok := s.read(line[m[2]:m[3]], t, i, now); ok && d > 0 && !ownPlan(line[:m[0]]) {
				return min(d, maxStated), i
			}
		}
	}
	return 0, -1
}

// ownPlan reports whether the words before a wait make it the client's own:
// "will retry in 1 seconds".
func ownPlan(before string) bool {
	before = strings.TrimRight(strings.ToLower(before), " ")
	return strings.HasSuffix(before, "will") || strings.HasSuffix(before, "'ll")
}

func inUnits(unit time.Duration) func(string, *text, int, time.Time) (time.Duration, bool) {
	return func(value string, _ *text, _ int, _ time.Time) (time.Duration, bool) {
		return times(value, unit)
	}
}

func times(number string, unit time.Duration) (time.Duration, bool) {
	n, err := strconv.ParseFloat(plainNumber(number), 64)
	if err != nil || n < 0 {
		return 0, false
	}
	if n > float64(maxStated)/float64(unit) {
		return maxStated, true
	}
	return time.Duration(math.Round(n * float64(unit))), true
}

// plainNumber takes out commas that group thousands, which are followed by
// exactly three digits, and writes any other one as a point: 1,200 and 18,6.
func plainNumber(number string) string {
	head, rest, found := strings.Cut(number, ",")
	switch {
	case !found:
		return number
	case head != "0" && len(span(rest, digit)) == len("000"):
		return head + plainNumber(rest)
	}
	return head + "." + rest
}

func asQuantity(value string, _ *text, _ int, _ time.Time) (time.Duration, bool) {
	var sum time.Duration
	read := false
	for i := 0; i < len(value); {
		if !digit(value[i]) {
			i++
			continue
		}
		number := span(value[i:], func(c byte) bool { return digit(c) || c == '.' || c == ',' })
		i += len(number)
		i += len(span(value[i:], func(c byte) bool { return c == ' ' || c == '\t' || c == '\'' || c == '"' }))
		unit := span(value[i:], letter)
		i += len(unit)
		d, ok := times(strings.TrimRight(number, ".,"), unitOf(strings.ToLower(unit)))
		if !ok {
			return 0, false
		}
		sum = min(sum+d, maxStated)
		read = true
	}
	return sum, read
}

func digit(c byte) bool  { return '0' <= c && c <= '9' }
func letter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

// span returns the leading bytes for which ok holds.
func span(s string, ok func(byte) bool) string {
	for i := range len(s) {
		if !ok(s[i]) {
			return s[:i]
		}
	}
	return s
}

func unitOf(word string) time.Duration {
	switch {
	case word == "ms" || strings.HasPrefix(word, "mil") || strings.HasPrefix(word, "msec"):
		return time.Millisecond
	case strings.HasPrefix(word, "s"):
		return time.Second
	case strings.HasPrefix(word, "m"):
		return time.Minute
	case strings.HasPrefix(word, "h"):
		return time.Hour
	case strings.HasPrefix(word, "d"):
		return 24 * time.Hour
	}
	return time.Second
}

// asDate reads an HTTP date. It is counted from the answer's own Date header,
// because the server's clock wrote both.
func asDate(value string, t *text, line int, now time.Time) (time.Duration, bool) {
	until, err := httpDate(strings.TrimSpace(value))
	if err != nil {
		return 0, false
	}
	if written, ok := dateHeader(t, line); ok {
		now = written
	}
	return until.Sub(now), !now.IsZero()
}

// httpDate reads the three forms of a date that HTTP allows.
func httpDate(value string) (time.Time, error) {
	const fixdate = "Mon, 02 Jan 2006 15:04:05 GMT"
	var err error
	for _, layout := range [...]string{fixdate, "Monday, 02-Jan-06 15:04:05 MST", time.ANSIC} {
		var d time.Time
		if d, err = time.Parse(layout, strings.Replace(value, "UTC", "GMT", 1)); err == nil {
			return d, nil
		}
	}
	return time.Time{}, err
}

// headerReach is how many lines an answer's headers may be apart.
const headerReach = 40

func dateHeader(t *text, line int) (time.Time, bool) {
	for i := max(0, line-headerReach); i < min(t.lines(), line+headerReach); i++ {
		key, value, found := strings.Cut(strings.TrimLeft(t.line(i), "<> \t"), ":")
		if !found || !strings.EqualFold(key, "date") {
			continue
		}
		if d, err := httpDate(strings.TrimSpace(value)); err == nil {
			return d, true
		}
	}
	return time.Time{}, false
}

func asTimestamp(value string, _ *text, _ int, now time.Time) (time.Duration, bool) {
	value = strings.ToUpper(strings.TrimSpace(value))
	value = strings.Replace(value, " ", "T", 1)
	for _, zone := range [...]string{" UTC", "UTC", " GMT", "GMT"} {
		value = strings.Replace(value, zone, "Z", 1)
	}
	for _, layout := range [...]string{time.RFC3339Nano, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05"} {
		if until, err := time.Parse(layout, strings.ReplaceAll(value, " ", "")); err == nil {
			return until.Sub(now), !now.IsZero()
		}
	}
	return 0, false
}
