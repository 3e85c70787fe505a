package classify

import (
	"math/bits"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/retryx/retryx/classify/internal/ruleset"
)

// An output is searched for some thousand phrases, nearly all of which are not
// in it. A bitmap of the text's sequences of three and of four bytes answers
// most of "is it in there" without touching the text; what passes is confirmed
// by a search, and only the lines that hold the phrase meet the regular
// expression.

const (
	// The bitmap has about 16 bits for each byte of the text, within these bounds.
	leastGramBits = 10
	mostGramBits  = 20
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
	shift  uint // of a hash, to become a bit of grams
}

func newText(full string) *text {
	t := &text{full: full, lower: lowerASCII(full)}
	if full == "" {
		return t
	}
	t.starts = lineStarts(full)
	t.noisy = make([]bool, len(t.starts)-1)
	t.index()
	return t
}

// index notes which short sequences the text has.
func (t *text) index() {
	size := min(max(bits.Len(uint(len(t.lower)))+4, leastGramBits), mostGramBits)
	t.shift = uint(32 - size)
	t.grams = make([]uint64, 1<<size/64)
	last := uint32(0) // the last four bytes
	for i := range len(t.lower) {
		last = last<<8 | uint32(t.lower[i])
		if i >= 2 {
			g := gram(last&0xffffff) >> t.shift
			t.grams[g/64] |= 1 << (g % 64)
		}
		if i >= 3 {
			g := gram(last) >> t.shift
			t.grams[g/64] |= 1 << (g % 64)
		}
	}
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

// gram spreads three or four bytes over all bits. Texts have no NUL, so a
// sequence of three is none of four.
func gram(sequence uint32) uint32 {
	sequence *= 0x9e3779b1
	return (sequence ^ sequence>>15) * 0x85ebca6b
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

// seenBy returns a line as an expression is written for it.
func (t *text) seenBy(e *ruleset.Expression, i int) string {
	if e.Cased() {
		return t.line(i)
	}
	return t.lower[t.starts[i] : t.starts[i+1]-1]
}

func (t *text) line(i int) string { return t.full[t.starts[i] : t.starts[i+1]-1] }

// mayHold reports whether a lower case phrase can be in the text.
func (t *text) mayHold(phrase string) bool {
	if len(phrase) > len(t.lower) {
		return false
	}
	mask, first := ^uint32(0), 3
	if len(phrase) == 3 {
		mask, first = 0xffffff, 2
	}
	last := uint32(0)
	for i := range len(phrase) {
		last = last<<8 | uint32(phrase[i])
		if i < first {
			continue
		}
		if g := gram(last&mask) >> t.shift; t.grams[g/64]&(1<<(g%64)) == 0 {
			return false
		}
	}
	return true
}

// candidates returns the lines that hold a phrase of each set, last first, at
// most limit of them; all lines when there are no sets.
func (t *text) candidates(sets [][]string, limit int) []int {
	if t.lines() == 0 {
		return nil
	}
	held := t.held(sets)
	if len(held) < len(sets) {
		return nil
	}
	var marked []bool
	if len(held) > 0 {
		marked = make([]bool, t.lines())
		for _, phrase := range held[0] {
			t.mark(phrase, marked)
		}
		held = held[1:]
	}
	var found []int
	for i := t.lines() - 1; i >= 0 && len(found) < limit; i-- {
		if (marked == nil || marked[i]) && t.holdsEach(i, held) {
			found = append(found, i)
		}
	}
	return found
}

// held returns of each set the phrases that the text can hold, up to the first
// set of which it holds none.
func (t *text) held(sets [][]string) [][]string {
	for i, set := range sets {
		if !slices.ContainsFunc(set, t.mayHold) {
			return sets[:i]
		}
	}
	held := make([][]string, len(sets))
	for i, set := range sets {
		for _, phrase := range set {
			if t.mayHold(phrase) {
				held[i] = append(held[i], phrase)
			}
		}
	}
	return held
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

func nowhere() spot { return spot{line: -1} }

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
		loc := re.FindStringIndex(t.seenBy(e, i))
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
		return nowhere()
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
