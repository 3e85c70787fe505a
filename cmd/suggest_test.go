package cmd

import "testing"

func TestDidYouMean(t *testing.T) {
	jitters := []string{"none", "full", "equal", "decorrelated"}
	keys := []string{"max_attempts", "max_delay", "max_elapsed", "delay", "budget", "budgets"}
	tests := []struct {
		name    string
		v       string
		choices []string
		want    string
	}{
		{"one letter short", "ful", jitters, `; did you mean "full"?`},
		{"two letters swapped", "eqaul", jitters, `; did you mean "equal"?`},
		{"a letter too many", "budgetss", keys, `; did you mean "budgets"?`},
		{"dashes", "max-attempts", keys, `; did you mean "max_attempts"?`},
		{"capitals", "Max_Delay", keys, `; did you mean "max_delay"?`},
		{"the nearest wins", "max_dely", keys, `; did you mean "max_delay"?`},
		{"the first of equals", "budgetx", []string{"budgeta", "budgetb"}, `; did you mean "budgeta"?`},
		{"nothing near", "exponential", jitters, ""},
		{"a letter is no word", "n", []string{"no", "x"}, ""},
		{"short words need to be near", "abc", []string{"xyc"}, ""},
		{"the same", "full", jitters, ""},
		{"nothing written", "", jitters, ""},
		{"no choices", "full", nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := didYouMean(tt.v, tt.choices); got != tt.want {
				t.Errorf("didYouMean(%q, %q) = %q, want %q", tt.v, tt.choices, got, tt.want)
			}
		})
	}
}

func TestEditDistance(t *testing.T) {
	tests := []struct {
		a, b   string
		enough int
		want   int
	}{
		{"", "", 9, 0},
		{"", "abc", 9, 3},
		{"kitten", "sitting", 9, 3},
		{"ab", "ba", 9, 1},
		{"ca", "abc", 9, 3}, // a letter is swapped or inserted at, not both
		{"kitten", "sitting", 2, 2},
		{"a", "abcdef", 3, 3},
	}
	for _, tt := range tests {
		for _, pair := range [][2]string{{tt.a, tt.b}, {tt.b, tt.a}} {
			if got := editDistance(pair[0], pair[1], tt.enough); got != tt.want {
				t.Errorf("editDistance(%q, %q, %d) = %d, want %d", pair[0], pair[1], tt.enough, got, tt.want)
			}
		}
	}
}

func TestOrList(t *testing.T) {
	tests := []struct {
		choices []string
		want    string
	}{
		{nil, ""},
		{[]string{"a"}, "a"},
		{[]string{"a", "b"}, "a or b"},
		{[]string{"a", "b", "c"}, "a, b or c"},
	}
	for _, tt := range tests {
		if got := orList(tt.choices); got != tt.want {
			t.Errorf("orList(%q) = %q, want %q", tt.choices, got, tt.want)
		}
	}
}
