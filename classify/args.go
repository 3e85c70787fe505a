package classify

import (
	"slices"
	"strings"

	"github.com/retryx/retryx/classify/internal/ruleset"
)

// arguments is a command line taken apart with what a tool's file says about
// its flags. Everything is table look-up: this runs on the success path.
type arguments struct {
	file  *ruleset.File
	argv  []string
	flags []flag
	words []int // indexes of the arguments that are no flags and no values
}

type flag struct{ name, value string }

func parseArguments(f *ruleset.File, argv []string) arguments {
	a := arguments{file: f, argv: argv}
	for i := 1; i < len(argv); i++ {
		arg := argv[i]
		switch {
		case arg == "--":
			for j := i + 1; j < len(argv); j++ {
				a.words = append(a.words, j)
			}
			return a
		case len(arg) < 2 || arg[0] != '-' && arg[0] != '+':
			a.words = append(a.words, i)
		default:
			if a.flag(arg, i) {
				i++
			}
		}
	}
	return a
}

// flag records the flag at index i and reports whether the next argument is
// its value.
func (a *arguments) flag(arg string, i int) bool {
	name, value, hasValue := strings.Cut(arg, "=")
	if !hasValue && slices.Contains(a.file.Values, name) {
		return a.add(name, i)
	}
	if !hasValue && rehearsal(name) && i+1 < len(a.argv) && a.argv[i+1] == "false" {
		return a.add(name, i) // npm's way
	}
	a.flags = append(a.flags, flag{name, value})
	if arg[0] == '-' && arg[1] != '-' && len(arg) > 2 && !a.file.LongDash {
		return a.cluster(arg, i)
	}
	return false
}

// add records a flag whose value is the next argument.
func (a *arguments) add(name string, i int) bool {
	if i+1 >= len(a.argv) {
		a.flags = append(a.flags, flag{name, ""})
		return false
	}
	a.flags = append(a.flags, flag{name, a.argv[i+1]})
	return true
}

// cluster takes apart short flags written together: -fsSLo FILE, -XPOST.
func (a *arguments) cluster(arg string, i int) bool {
	at := valued(arg, a.file.Values)
	for j := 1; j < at; j++ {
		a.flags = append(a.flags, flag{"-" + arg[j:j+1], ""})
	}
	switch at {
	case len(arg):
		return false
	case len(arg) - 1:
		return a.add("-"+arg[at:], i)
	}
	a.flags = append(a.flags, flag{"-" + arg[at:at+1], strings.TrimPrefix(arg[at+1:], "=")})
	return false
}

// valued returns where among short flags written together the first one stands
// that takes a value, which is the rest of them or, if it is the last one, the
// next argument; the length of arg when none does.
func valued(arg string, values []string) int {
	if len(arg) < 2 || arg[0] != '-' || arg[1] == '-' {
		return len(arg)
	}
	for j := 1; j < len(arg); j++ {
		if slices.Contains(values, "-"+arg[j:j+1]) {
			return j
		}
	}
	return len(arg)
}

// takesNext reports whether the next argument is the value of a flag, or of the
// last one of short flags written together: --user app, -iu app.
func takesNext(arg string, values []string) bool {
	return slices.Contains(values, arg) || valued(arg, values) == len(arg)-1
}

// match reports whether the condition holds, and how many words the matching
// subcommand phrase has.
func (a *arguments) match(w *ruleset.When) (bool, int) {
	phrase := 0
	if len(w.Program) > 0 && !a.isProgram(w.Program) {
		return false, 0
	}
	if len(w.Sub) > 0 {
		if phrase = a.phrase(w.Sub); phrase == 0 {
			return false, 0
		}
	}
	if len(w.Flags) > 0 && !slices.ContainsFunc(w.Flags, a.has) {
		return false, 0
	}
	if slices.ContainsFunc(w.Without, a.has) {
		return false, 0
	}
	if len(w.Words) > 0 && !slices.ContainsFunc(w.Words, a.hasWord) {
		return false, 0
	}
	return true, phrase
}

// isProgram reports whether the program has one of the names.
func (a *arguments) isProgram(names []string) bool {
	for name := range programNames(a.argv[0]) {
		if slices.Contains(names, name) {
			return true
		}
	}
	return false
}

// phrase returns the length in words of the first phrase that the words start
// with, 0 for none.
func (a *arguments) phrase(phrases []string) int {
	for _, p := range phrases {
		n, ok := 0, true
		for want := range strings.FieldsSeq(p) {
			if n >= len(a.words) || !glob(want, a.argv[a.words[n]]) {
				ok = false
				break
			}
			n++
		}
		if ok && n > 0 {
			return n
		}
	}
	return 0
}

// has reports whether a flag is given: "-d", "--data*", "-X=POST|PATCH".
func (a *arguments) has(want string) bool {
	name, values, hasValue := strings.Cut(want, "=")
	return slices.ContainsFunc(a.flags, func(f flag) bool {
		return glob(name, f.name) && (!hasValue || anyGlob(values, f.value)) && !f.denied()
	})
}

// rehearsal reports whether a flag asks to do nothing, in whichever spelling.
func rehearsal(name string) bool {
	switch strings.ToLower(strings.Trim(name, "-")) {
	case "dry-run", "dryrun", "dry_run", "simulate", "what-if", "whatif", "help":
		return true
	}
	return false
}

// denied reports whether a flag says that this is no rehearsal, which is as if
// it were not there: --dry-run=false.
func (f flag) denied() bool {
	if f.value == "" || !rehearsal(f.name) {
		return false
	}
	switch strings.ToLower(f.value) {
	case "false", "f", "no", "n", "0", "off", "none":
		return true
	}
	return false
}

func anyGlob(values, value string) bool {
	for v := range strings.SplitSeq(strings.ToLower(values), "|") {
		if glob(v, strings.ToLower(value)) {
			return true
		}
	}
	return false
}

// glob matches a pattern in which * stands for anything.
func glob(pattern, s string) bool {
	head, tail, found := strings.Cut(pattern, "*")
	if !found {
		return pattern == s
	}
	if !strings.HasPrefix(s, head) {
		return false
	}
	s = s[len(head):]
	if tail == "" {
		return true
	}
	for i := range len(s) + 1 {
		if glob(tail, s[i:]) {
			return true
		}
	}
	return false
}

// hasWord looks for a whole word in any argument but the first, whatever its
// case.
func (a *arguments) hasWord(word string) bool {
	return slices.ContainsFunc(a.argv[1:], func(arg string) bool { return containsWord(arg, word) })
}

func containsWord(s, word string) bool {
	for i := 0; i+len(word) <= len(s); i++ {
		if strings.EqualFold(s[i:i+len(word)], word) &&
			(i == 0 || !wordByte(s[i-1])) && (i+len(word) == len(s) || !wordByte(s[i+len(word)])) {
			return true
		}
	}
	return false
}

func wordByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80
}

// subcommand returns the words that name what the tool is to do.
func (a *arguments) subcommand() string {
	n := min(a.file.Depth, len(a.words))
	words := make([]string, n)
	for i := range n {
		words[i] = a.argv[a.words[i]]
	}
	return strings.Join(words, " ")
}

// inner returns the command that starts after the phrase and skip more words.
func (a *arguments) inner(phrase, skip int) []string {
	if i := phrase + skip; i < len(a.words) {
		return a.argv[a.words[i]:]
	}
	return nil
}
