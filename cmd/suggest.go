package cmd

// What to say to somebody who mistyped a name.

import (
	"fmt"
	"strings"
)

// didYouMean returns `; did you mean "x"?` for the choice that v was most
// likely meant to be, or nothing when no choice is near.
func didYouMean(v string, choices []string) string {
	if near := nearest(v, choices); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// nearest is the choice that v was most likely meant to be, "" when none is
// near. Case and the difference between "-" and "_" do not count as mistakes.
func nearest(v string, choices []string) string {
	best, least := "", mistakes(v)+1
	for _, c := range choices {
		if d := editDistance(plainName(v), plainName(c), least); d < least {
			best, least = c, d
		}
	}
	if best == v {
		return ""
	}
	return best
}

// mistakes is how many of them a word of v's length may hold: more would turn
// any short word into any other.
func mistakes(v string) int { return min(3, (len(v)+1)/3) }

func plainName(s string) string { return strings.ReplaceAll(strings.ToLower(s), "-", "_") }

// editDistance counts the letters to insert, delete, replace or swap with their
// neighbour to get from a to b. It returns enough as soon as it takes that many.
func editDistance(a, b string, enough int) int {
	if len(a)-len(b) >= enough || len(b)-len(a) >= enough {
		return enough
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			replace := last[j]
			if a[i] != b[j] {
				replace++
			}
			row[j+1] = min(replace, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return min(last[len(b)], enough)
}

// orList joins choices for a sentence: "a, b or c".
func orList(choices []string) string {
	if len(choices) < 2 {
		return strings.Join(choices, "")
	}
	last := len(choices) - 1
	return strings.Join(choices[:last], ", ") + " or " + choices[last]
}
