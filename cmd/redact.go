package cmd

// What is hidden before anything is shown, stored or cut:
//
//   - values of environment variables whose names speak of secrets, when they
//     have at least six characters and are no paths, also percent-encoded or
//     quoted as in JSON (SSH_AUTH_SOCK is a path, RETRYX_ names are ours);
//   - what looks like a secret by its surroundings or by itself (shapes.go);
//   - values of the tool's secret flags, and of any --password, --token,
//     --secret, --api-key and their kin;
//   - values of headers that are not standard ones;
//   - what the user's own expressions match.
//
// Everything is found by hand-written scanners, as argv is redacted on the
// success path and compiling one expression costs more than a whole run.

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	mask           = "***"
	shortestSecret = 6  // characters of a variable's value
	longLine       = 16 // bytes of one line of a secret with many, as in a PEM file
	passes         = 8  // hiding may bring up something to hide; see hide
)

// redactor hides secrets. A nil one still hides what shows by itself and makes
// text printable.
type redactor struct {
	secrets []string // as they look once printable
	flags   []string // secret flags of more than one letter, with their dashes
	letters string   // secret flags of one letter
	extra   []*regexp.Regexp
}

// newRedactor makes a redactor for a run with this environment. secretFlags are
// flags as their tool writes them ("-u", "--user").
func newRedactor(environ, secretFlags []string, extra []*regexp.Regexp) *redactor {
	r := &redactor{extra: extra}
	for _, kv := range environ {
		name, value, ok := strings.Cut(kv, "=")
		if ok && len(value) >= shortestSecret && isSecretName(name) && !isExcepted(name) && !isPath(value) {
			r.learn(value)
		}
	}
	for _, f := range secretFlags {
		if len(f) == 2 && f[0] == '-' && f[1] != '-' {
			r.letters += f[1:]
		} else {
			r.flags = append(r.flags, f)
		}
	}
	return r
}

// learn remembers a secret and the forms that it takes in what programs print.
func (r *redactor) learn(value string) {
	value = strings.TrimSpace(printable(value))
	if utf8.RuneCountInString(value) < shortestSecret {
		return
	}
	forms := []string{value, url.QueryEscape(value), url.PathEscape(value)}
	if strings.ContainsAny(value, "\"\\\n\t") {
		if text, err := json.Marshal(value); err == nil {
			forms = append(forms, string(text[1:len(text)-1]))
		}
	}
	if strings.Contains(value, "\n") {
		forms = append(forms, oneLine(value))
		for line := range strings.SplitSeq(value, "\n") {
			if line = strings.TrimSpace(line); len(line) >= longLine {
				forms = append(forms, line)
			}
		}
	}
	for _, f := range forms {
		if !slices.Contains(r.secrets, f) {
			r.secrets = append(r.secrets, f)
		}
	}
}

// secretWords in a variable's name say that its value is a secret.
func secretWords() [8]string {
	return [...]string{"TOKEN", "SECRET", "PASS", "PWD", "KEY", "CREDENTIAL", "AUTH", "COOKIE"}
}

func isSecretName(name string) bool {
	for i := range len(name) {
		switch name[i] | 0x20 { // most letters begin none of the words
		case 't', 's', 'p', 'k', 'c', 'a':
		default:
			continue
		}
		for _, w := range secretWords() {
			if len(name)-i >= len(w) && strings.EqualFold(name[i:i+len(w)], w) {
				return true
			}
		}
	}
	return false
}

// isExcepted names what is no secret for all its name: a socket, and our own
// variables, but for the one that holds a password.
func isExcepted(name string) bool {
	return name == "SSH_AUTH_SOCK" || strings.HasPrefix(name, "RETRYX_") && name != "RETRYX_REDIS_PASSWORD"
}

func isPath(value string) bool {
	return value[0] == '/' || value[0] == '~' || strings.HasPrefix(value, "./") || strings.HasPrefix(value, "../")
}

// text returns s printable and without secrets. Lines stay lines.
func (r *redactor) text(s string) string { return r.hide(printable(s), inProse) }

// line returns s as one line of at most limit bytes, redacted before it is cut.
func (r *redactor) line(s string, limit int) string {
	whole := r.hide(printable(s), inProse)
	if flat := oneLine(whole); flat != whole {
		whole = r.hide(flat, inProse) // a secret with a blank in it may stand there now
	}
	return cut(whole, limit)
}

// tail returns the end of an output. As it may begin in the middle of a secret,
// so does what is hidden.
func (r *redactor) tail(b []byte) string {
	s := printable(string(b))
	if r != nil {
		s = r.hideRest(s)
	}
	return r.hide(s, inProse)
}

// hideRest hides the end of a secret at the start of s.
func (r *redactor) hideRest(s string) string {
	longest := 0
	for _, secret := range r.secrets {
		for n := min(len(secret)-1, len(s)); n >= shortestSecret && n > longest; n-- {
			if strings.HasSuffix(secret, s[:n]) {
				longest = n
			}
		}
	}
	if longest == 0 {
		return s
	}
	return mask + s[longest:]
}

// argv returns the command line with its secrets hidden. What a flag says about
// the argument after it counts.
func (r *redactor) argv(argv []string) []string {
	out := make([]string, len(argv))
	for i, arg := range argv {
		switch {
		case i > 1 && r.takesSecret(argv[i-1], inCommand):
			out[i] = mask
		case i > 1 && isHeaderFlag(argv[i-1]):
			out[i] = r.hide(hideHeader(printable(arg)), inCommand)
		default:
			out[i] = r.argument(printable(arg), i == 0)
		}
	}
	return out
}

// argument redacts one argument that says itself what it is.
func (r *redactor) argument(arg string, program bool) string {
	if program {
		return r.hide(arg, inCommand)
	}
	for _, flag := range [...]string{"-H", "--header=", "--proxy-header="} {
		if header, ok := strings.CutPrefix(arg, flag); ok && hideHeader(header) != header {
			return r.hide(flag+hideHeader(header), inCommand)
		}
	}
	if n := r.attached(arg, inCommand); n > 0 {
		arg = arg[:n] + mask
	}
	return r.hide(arg, inCommand)
}

func isHeaderFlag(arg string) bool {
	return arg == "-H" || arg == "--header" || arg == "--proxy-header"
}

// hideHeader hides the value of a header that is not a standard one.
func hideHeader(header string) string {
	name, value, ok := strings.Cut(header, ":")
	if !ok || strings.TrimSpace(value) == "" || isStandardHeader(strings.TrimSpace(name)) {
		return header
	}
	if value[0] == '/' { // another tool's -H: host:/path, ldap://host
		return header
	}
	return name + ": " + mask
}

func isStandardHeader(name string) bool {
	for _, prefix := range [...]string{"accept", "content-", "if-", "access-control-", "sec-"} {
		if len(name) >= len(prefix) && strings.EqualFold(name[:len(prefix)], prefix) {
			return true
		}
	}
	for _, known := range [...]string{
		"cache-control", "connection", "date", "depth", "destination", "dnt", "expect", "forwarded", "from", "host",
		"keep-alive", "max-forwards", "origin", "overwrite", "pragma", "prefer", "priority", "range", "referer", "te",
		"trailer", "transfer-encoding", "upgrade", "user-agent", "via",
	} {
		if strings.EqualFold(name, known) {
			return true
		}
	}
	return false
}

// place is where a text stands: a flag of one letter means something in a
// command only.
type place bool

const (
	inProse   place = false
	inCommand place = true
)

// takesSecret reports whether arg is a flag whose value, a secret, comes next.
func (r *redactor) takesSecret(arg string, where place) bool {
	if len(arg) < 2 || arg[0] != '-' {
		return false
	}
	if r.isSecretFlag(arg) {
		return true
	}
	n := r.letter(arg, where)
	return n > 0 && n == len(arg)
}

// attached returns where in arg, a flag with its value, the secret begins, 0
// for nowhere: --user=NAME:PASSWORD, -pPASSWORD.
func (r *redactor) attached(arg string, where place) int {
	if len(arg) < 3 || arg[0] != '-' {
		return 0
	}
	if name, _, ok := strings.Cut(arg, "="); ok && len(arg) > len(name)+1 {
		if r.isSecretFlag(name) {
			return len(name) + 1
		}
	}
	if r.isSecretFlag(arg) {
		return 0 // its value comes next
	}
	if n := r.letter(arg, where); n < len(arg) {
		return n
	}
	return 0
}

// letter returns where in a cluster of short flags the value of a secret one
// begins, 0 for nowhere. Which of the letters before it takes a value of its
// own is not known here: too much is hidden rather than too little.
func (r *redactor) letter(arg string, where place) int {
	if where != inCommand || r == nil || r.letters == "" || arg[1] == '-' {
		return 0
	}
	for i := 1; i < len(arg) && isLetter(arg[i]); i++ {
		if strings.IndexByte(r.letters, arg[i]) >= 0 {
			return i + 1
		}
	}
	return 0
}

// isSecretFlag reports whether flag, of more than one letter, takes a secret in
// this tool or in any.
func (r *redactor) isSecretFlag(flag string) bool {
	return namesSecret(flag) || r != nil && slices.Contains(r.flags, flag)
}

// namesSecret knows --password and its kin in any tool, and -password in tools
// that write long flags with one dash.
func namesSecret(flag string) bool {
	name := strings.TrimLeft(flag, "-")
	if len(name) < len("pass") || len(flag) == len(name) {
		return false
	}
	for _, question := range [...]string{"no-", "with-", "ask-", "show-"} { // these take no value
		if strings.HasPrefix(name, question) {
			return false
		}
	}
	return isSecretKey(name)
}

// hide replaces every secret in s, which is printable. Where hiding one brings
// up another (a variable's value that holds asterisks) it looks again. In the
// end no known secret is left: replacing those only makes the text shorter.
func (r *redactor) hide(s string, where place) string {
	for range passes {
		spans := r.literals(nil, s)
		spans = r.shapes(spans, s, where)
		if r != nil {
			for _, re := range r.extra {
				for _, m := range re.FindAllStringIndex(s, -1) {
					spans = append(spans, span{m[0], m[1]})
				}
			}
		}
		hidden := masked(s, spans)
		if hidden == s {
			return s
		}
		s = hidden
	}
	for spans := r.literals(nil, s); len(spans) > 0; spans = r.literals(nil, s) {
		s = masked(s, spans)
	}
	return s
}

// span is a part of a text, from its first byte to behind its last.
type span struct{ from, to int }

// literals finds the known secrets, overlapping ones too.
func (r *redactor) literals(spans []span, s string) []span {
	if r == nil {
		return spans
	}
	for _, secret := range r.secrets {
		for at := 0; ; at++ {
			n := strings.Index(s[at:], secret)
			if n < 0 {
				break
			}
			at += n
			spans = append(spans, span{at, at + len(secret)})
		}
	}
	return spans
}

// masked returns s with the spans replaced, each run of touching ones once.
// Asterisks beside a span belong to it, so that masking twice changes nothing.
func masked(s string, spans []span) string {
	if len(spans) == 0 {
		return s
	}
	for i := range spans {
		for p := &spans[i]; p.from < p.to && p.from > 0 && s[p.from-1] == '*'; p.from-- {
		}
		for p := &spans[i]; p.from < p.to && p.to < len(s) && s[p.to] == '*'; p.to++ {
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	var b strings.Builder
	at := 0 // behind the last mask
	for _, p := range spans {
		switch {
		case p.from >= p.to:
		case p.from <= at && b.Len() > 0:
			at = max(at, p.to)
		default:
			b.WriteString(s[at:p.from])
			b.WriteString(mask)
			at = p.to
		}
	}
	b.WriteString(s[at:])
	return b.String()
}
