package cmd

// What is hidden before anything is shown, stored or cut:
//
//   - values of environment variables whose names speak of secrets, when they
//     have at least six characters and are no paths, in all the forms that
//     programs print them in (redact_learn.go; SSH_AUTH_SOCK is a path, RETRYX_
//     names are ours), and passwords in the URLs of any variable;
//   - what looks like a secret by its surroundings or by itself (shapes.go);
//   - what the command line says is a secret (redact_command.go), there and,
//     from six characters on, wherever else it turns up;
//   - what the user's own expressions match.
//
// Everything is found by hand-written scanners, as argv is redacted on the
// success path and compiling one expression costs more than a whole run.

import (
	"os"
	"regexp"
	"slices"
	"strings"
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
	plain   []string // of these, those whose base64 was not learned yet
	tool    vocabulary
	unread  [][]string // command lines whose secrets are not among the secrets yet
	extra   []*regexp.Regexp
}

// newRedactor makes a redactor for a run with this environment. secretFlags are
// flags as their tool writes them ("-u", "--user").
func newRedactor(environ, secretFlags []string, extra []*regexp.Regexp) *redactor {
	r := &redactor{extra: extra}
	for _, kv := range environ {
		if strings.IndexByte(kv, '@') > 0 {
			r.learnURLs(kv)
		}
		name, value, ok := strings.Cut(kv, "=")
		if ok && len(value) >= shortestSecret && isSecretName(name) && !isExcepted(name) && !isWorkingDirectory(name, value) && !isPath(value) {
			r.learn(value)
		}
	}
	r.tool.add(secretFlags)
	return r
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

// isWorkingDirectory knows what every shell sets, so that the root need not be
// read for it.
func isWorkingDirectory(name, value string) bool {
	return (name == "PWD" || name == "OLDPWD") && value[0] == '/'
}

// isPath tells paths from secrets that begin as they do: one base64 text in 64
// begins with a slash. What stands directly below the root is there for a path,
// also for one that is misspelt further on.
func isPath(value string) bool {
	if value[0] != '/' {
		return value == "~" || strings.HasPrefix(value, "~/") || strings.HasPrefix(value, "./") || strings.HasPrefix(value, "../")
	}
	top, _, _ := strings.Cut(strings.TrimLeft(value, "/"), "/")
	root, err := os.Open("/")
	if err != nil {
		return false
	}
	defer root.Close()
	names, _ := root.Readdirnames(-1) // nothing is looked up: a dead mount would hold us up
	return slices.Contains(names, top)
}

// line returns s as one line of at most limit bytes, redacted before it is cut.
func (r *redactor) line(s string, limit int) string {
	if s == "" {
		return ""
	}
	r.settle()
	whole := r.hide(printable(s), nil)
	if flat := oneLine(whole); flat != whole {
		whole = r.hide(flat, nil) // a secret with a blank in it may stand there now
	}
	return cut(whole, limit)
}

// tail returns the end of an output. As it may begin in the middle of a secret,
// so does what is hidden.
func (r *redactor) tail(b []byte) string {
	r.settle()
	s := printable(string(b))
	if r != nil {
		s = r.hideRest(s)
	}
	return r.hide(s, nil)
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

// hide replaces every secret in s, which is printable. Where hiding one brings
// up another (a variable's value that holds asterisks) it looks again. In the
// end no known secret is left: replacing those only makes the text shorter. In
// a command spoken holds what its tools call secret; elsewhere it is nil.
func (r *redactor) hide(s string, spoken *vocabulary) string {
	for range passes {
		spans := r.literals(nil, s)
		spans = r.shapes(spans, s, spoken)
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
