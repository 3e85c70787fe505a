package classify

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/retryx/retryx/classify/internal/ruleset"
)

// An output is searched for some thousand phrases, nearly all of which are not
// in it. A bitmap of the text's three-byte sequences answers most of "is it in
// there" without touching the text; what passes is confirmed by a search, and
// only the lines that hold the phrase meet the regular expression.

const (
	gramBits = 16
	// maxTried bounds the lines given to one expression. They are taken from
	// the end, where errors stand.
	maxTried = 64
	// maxChatter bounds the lines that are recognised as retry chatter.
	maxChatter = 4096
)

type text struct {
	full   string
	lower  string // full with A-Z lowered, byte for byte
	starts []int  // where each line begins; one more for the end
	noisy  []bool // lines that tell of the tool's own retries
	grams  []uint64
}

func newText(full string) *text {
	t := &text{full: full, lower: lowerASCII(full)}
	if full == "" {
		return t
	}
	t.starts = lineStarts(full)
	t.noisy = make([]bool, len(t.starts)-1)
	t.grams = make([]uint64, 1<<gramBits/64)
	for i := 0; i+3 <= len(t.lower); i++ {
		g := gram(t.lower[i], t.lower[i+1], t.lower[i+2])
		t.grams[g/64] |= 1 << (g % 64)
	}
	return t
}

func lineStarts(s string) []int {
	starts := make([]int, 1, 1+strings.Count(s, "\n")+1)
	for i := range len(s) {
		if s[i] == '\n' {
			starts = append(starts, i+1)
		}
	}
	return append(starts, len(s)+1)
}

func gram(a, b, c byte) uint32 {
	return (uint32(a)*0x9e5 ^ uint32(b)*0x1f3 ^ uint32(c)) & (1<<gramBits - 1)
}

func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// lines returns how many lines there are; a nil text has none.
func (t *text) lines() int {
	if t == nil {
		return 0
	}
	return len(t.noisy)
}

func (t *text) line(i int) string { return t.full[t.starts[i] : t.starts[i+1]-1] }

// mayHold reports whether a lower case phrase can be in the text.
func (t *text) mayHold(phrase string) bool {
	for i := 0; i+3 <= len(phrase); i++ {
		g := gram(phrase[i], phrase[i+1], phrase[i+2])
		if t.grams[g/64]&(1<<(g%64)) == 0 {
			return false
		}
	}
	return len(phrase) <= len(t.lower)
}

// candidates returns the lines that hold a phrase of each set, last first, at
// most limit of them; all lines when there are no sets.
func (t *text) candidates(sets [][]string, limit int) []int {
	if t.lines() == 0 {
		return nil
	}
	for _, set := range sets {
		if !slices.ContainsFunc(set, t.mayHold) {
			return nil
		}
	}
	var marked []bool
	if len(sets) > 0 {
		marked = make([]bool, t.lines())
		for _, phrase := range sets[0] {
			if t.mayHold(phrase) {
				t.mark(phrase, marked)
			}
		}
		sets = sets[1:]
	}
	var found []int
	for i := t.lines() - 1; i >= 0 && len(found) < limit; i-- {
		if (marked == nil || marked[i]) && t.holdsEach(i, sets) {
			found = append(found, i)
		}
	}
	return found
}

// holdsEach reports whether a line holds a phrase of each set.
func (t *text) holdsEach(i int, sets [][]string) bool {
	line := t.lower[t.starts[i] : t.starts[i+1]-1]
	for _, set := range sets {
		if !slices.ContainsFunc(set, func(phrase string) bool { return strings.Contains(line, phrase) }) {
			return false
		}
	}
	return true
}

// mark sets the lines that hold the phrase.
func (t *text) mark(phrase string, marked []bool) {
	line := 0
	for at := 0; at < len(t.lower); {
		i := strings.Index(t.lower[at:], phrase)
		if i < 0 {
			return
		}
		at += i
		for t.starts[line+1] <= at {
			line++
		}
		marked[line] = true
		at = t.starts[line+1]
	}
}

// spot is a match in an output.
type spot struct {
	line   int // -1 when nothing matched
	offset int // of the match in the line
	length int // of the match
	noisy  bool
}

var nowhere = spot{line: -1}

// last returns the last line that matches, a line of the tool's retry chatter
// only if no other one does; best, when that is as good already.
func (t *text) last(e *ruleset.Expression, compile func(*ruleset.Expression) *regexp.Regexp, best spot) spot {
	for _, i := range t.candidates(e.Need, maxTried) {
		if best.line >= 0 && !best.noisy && (i < best.line || t.noisy[i]) {
			continue
		}
		re := compile(e)
		if re == nil {
			return best
		}
		loc := re.FindStringIndex(t.line(i))
		if loc == nil {
			continue
		}
		if here := (spot{line: i, offset: loc[0], length: loc[1] - loc[0], noisy: t.noisy[i]}); here.beats(best) {
			best = here
		}
		if !best.noisy {
			return best
		}
	}
	return best
}

// beats prefers the end to chatter, then the later line, then the longer match.
func (s spot) beats(o spot) bool {
	switch {
	case o.line < 0:
		return true
	case s.noisy != o.noisy:
		return o.noisy
	case s.line != o.line:
		return s.line > o.line
	}
	return s.length > o.length
}

// whole matches a user's expression against the text as it stands.
func (t *text) whole(re *regexp.Regexp) spot {
	loc := re.FindStringIndex(t.full)
	if loc == nil || t.lines() == 0 {
		return nowhere
	}
	line := strings.Count(t.full[:loc[0]], "\n")
	return spot{line: line, offset: loc[0] - t.starts[line], length: loc[1] - loc[0]}
}

// finalLine returns the last line that says something.
func (t *text) finalLine() string {
	noise := ""
	for i := t.lines() - 1; i >= 0; i-- {
		line := strings.TrimSpace(t.line(i))
		switch {
		case line == "":
		case !t.noisy[i]:
			return line
		case noise == "":
			noise = line
		}
	}
	return noise
}

// Consoles of a fixed width break messages within sentences and even words.
const (
	unwrapTail  = 8 << 10 // bytes of the end that are looked at again
	wrapWidth   = 60      // characters; a shorter line was not broken by a console
	wrapMax     = 200     // a longer one neither
	wrapReached = 3       // lines that one phrase may stretch over
)

// unwrapped returns each line of the end that a console may have broken, joined
// with the ones after it by the given glue; nil when there is none. Frames of
// box-drawing characters go.
func (t *text) unwrapped(glue string) *text {
	var lines []string
	var open []bool
	for line := range strings.SplitSeq(t.full[max(0, len(t.full)-unwrapTail):], "\n") {
		width := utf8.RuneCountInString(line)
		lines = append(lines, strings.Trim(line, " \t│┃║|╷╵"))
		open = append(open, wrapWidth <= width && width <= wrapMax)
	}
	var joined []string
	for i := range lines {
		last := i
		for last-i+1 < wrapReached && last+1 < len(lines) && open[last] && lines[last+1] != "" {
			last++
		}
		if last > i {
			joined = append(joined, strings.Join(lines[i:last+1], glue))
		}
	}
	if joined == nil {
		return nil
	}
	return newText(strings.Join(joined, "\n"))
}
