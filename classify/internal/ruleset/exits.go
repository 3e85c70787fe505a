package ruleset

import (
	"fmt"
	"strconv"
	"strings"
)

// Contains reports whether the status lies in the range.
func (r Range) Contains(status int) bool { return r.Lo <= status && status <= r.Hi }

// ParseExits reads a list of exit statuses such as "7,28,50-60". Statuses are
// 0 to 255; an empty list, an empty entry or a reversed range is an error.
func ParseExits(list string) ([]Range, error) {
	var ranges []Range
	for entry := range strings.SplitSeq(list, ",") {
		r, err := parseRange(strings.TrimSpace(entry))
		if err != nil {
			return nil, fmt.Errorf("read exit list %q: %w", list, err)
		}
		ranges = append(ranges, r)
	}
	return ranges, nil
}

func parseRange(entry string) (Range, error) {
	lo, hi, isRange := strings.Cut(entry, "-")
	first, err := parseStatus(lo)
	if err != nil {
		return Range{}, err
	}
	if !isRange {
		return Range{first, first}, nil
	}
	last, err := parseStatus(hi)
	if err != nil {
		return Range{}, err
	}
	if last < first {
		return Range{}, fmt.Errorf("range %q runs backwards", entry)
	}
	return Range{first, last}, nil
}

func parseStatus(word string) (int, error) {
	word = strings.TrimSpace(word)
	n, err := strconv.ParseUint(word, 10, 16)
	if err != nil || n > 255 {
		return 0, fmt.Errorf("%q is no exit status (0 to 255)", word)
	}
	return int(n), nil
}
