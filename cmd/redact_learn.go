package cmd

// What is known of a secret once its value was found:
//
//   - the value, and the forms that it takes in what programs print: escaped as
//     in URLs, JSON, XML and a shell's quotes, and in base64;
//   - the part of it that is one by itself: of NAME:PASSWORD, Bearer TOKEN,
//     pass:PASSWORD, USER/PASSWORD@HOST;
//   - the values of its pairs, as in NAME=VALUE,NAME=VALUE, in cookies and in
//     JSON. Those that are called version or host, or look like one, stay: errors
//     are made of them.

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// learn remembers a secret and the forms that it takes in what programs print.
func (r *redactor) learn(value string) {
	value = strings.TrimSpace(printable(value))
	if utf8.RuneCountInString(value) < shortestSecret {
		return
	}
	if slices.Contains(r.secrets, value) {
		return
	}
	r.plain = append(r.plain, value)
	r.remember(value, url.QueryEscape(value), strings.ReplaceAll(url.QueryEscape(value), "+", "%20"), url.PathEscape(value))
	if strings.ContainsAny(value, "\"\\\n\t<>&'") || !isPlain(value) {
		r.remember(quotedForms(value)...)
	}
	if strings.Contains(value, "\n") {
		r.remember(oneLine(value))
		for line := range strings.SplitSeq(value, "\n") {
			if line = strings.TrimSpace(line); len(line) >= longLine {
				r.remember(line)
			}
		}
	}
}

func (r *redactor) remember(forms ...string) {
	for _, f := range forms {
		if !slices.Contains(r.secrets, f) {
			r.secrets = append(r.secrets, f)
		}
	}
}

// quotedForms are the value as in JSON, with and without what browsers must not
// see, in ASCII alone, in XML and in a shell's single quotes.
func quotedForms(value string) []string {
	var forms []string
	if text, err := json.Marshal(value); err == nil {
		forms = append(forms, string(text[1:len(text)-1]))
	}
	quoted, ascii := strconv.Quote(value), strconv.QuoteToASCII(value)
	return append(
		forms, quoted[1:len(quoted)-1], ascii[1:len(ascii)-1],
		strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(value),
		strings.ReplaceAll(value, "'", `'\''`),
	)
}

// encode learns the base64 of what is known so far. What stands in front of a
// secret there, as a user's name, decides which of three forms it takes; each is
// without the characters that a neighbour shares.
func (r *redactor) encode() {
	for _, value := range r.plain {
		for before := range 3 {
			text := base64.StdEncoding.EncodeToString([]byte("\x00\x00"[:before] + value))
			text = text[(before*8+5)/6 : (before+len(value))*8/6]
			r.remember(text)
			if strings.ContainsAny(text, "+/") {
				r.remember(strings.NewReplacer("+", "-", "/", "_").Replace(text))
			}
		}
	}
	r.plain = nil
}

// learnSpan learns what a command line called a secret, which stands there behind
// before.
func (r *redactor) learnSpan(before, value string) {
	value = strings.TrimLeft(strings.Trim(value, " *\"'`\\"), "=")
	if value == "" || value[0] == '$' {
		return // what a variable holds is learned by its name
	}
	scheme, ok := strings.CutSuffix(before, "://")
	if ok && !strings.Contains(value, ":") && !strings.HasSuffix(scheme, "http") && !strings.HasSuffix(scheme, "https") {
		return // a user, as in ssh://git@host
	}
	if header, ok := strings.CutSuffix(strings.TrimRight(before, " "), ":"); ok {
		if name := header[nameBefore(header, len(header)):]; !isSecretName(name) && isOrdinary(value) {
			return
		}
	}
	if name, ok := strings.CutSuffix(before, "="); ok && isSecretKey(name[nameBefore(name, len(name)):]) {
		if n := strings.IndexAny(value, ",:#"); n > 0 { // the list goes on
			r.learn(value[:n])
		}
	}
	r.learnValue(value)
}

// learnURLs learns the passwords in URLs of a variable, whatever its name:
// DATABASE_URL, HTTPS_PROXY.
func (r *redactor) learnURLs(kv string) {
	for at := 0; ; {
		n := strings.Index(kv[at:], "://")
		if n < 0 {
			return
		}
		at += n + len("://")
		if p := userInfo(kv, at); p.from < p.to {
			r.learnSpan(kv[:at], kv[p.from:p.to])
		}
	}
}

// learnValue learns a secret, its pairs, and the part of it that is one.
func (r *redactor) learnValue(value string) {
	if isPath(value) {
		return
	}
	found := pairs(value)
	for _, p := range found {
		if p.value != value {
			r.learnPair(p, deepestPair)
		}
	}
	if strings.Contains(value, "://") {
		return
	}
	r.learn(value)
	r.learn(strings.TrimRight(value, "}])")) // what held its name goes on
	if n := strings.IndexAny(value, ":,% "); found[0].name == "" && (len(found) == 1 || n > 0 && value[n] == ':') {
		r.learnParts(value)
	}
}

// learnParts learns the parts of a secret, also unescaped as of a URL.
func (r *redactor) learnParts(value string) {
	for _, part := range append(secretParts(value), value) {
		r.learn(part)
		if plain, err := url.PathUnescape(part); err == nil {
			r.learn(plain)
		}
	}
}

// secretParts are the parts of a secret that are one: a password of a user, a
// token of a scheme, the end of an address.
func secretParts(value string) []string {
	var parts []string
	rest := value
	if n := strings.IndexAny(value, ":,% "); n >= 0 {
		rest = strings.TrimSpace(value[n+1:])
		parts = append(parts, rest)
		if value[n] == ' ' && !strings.Contains(rest, " ") { // a scheme's ID:SECRET
			_, key, _ := strings.Cut(rest, ":")
			parts = append(parts, key)
		}
		if value[n] == ':' && (rest == "" || rest == "x-oauth-basic") { // a token for a user
			parts = append(parts, value[:n])
		}
	}
	if n := strings.LastIndexByte(rest, '@'); n > 0 { // user:password@host
		parts = append(parts, rest[:n])
	}
	if n := strings.LastIndexByte(value, '@'); n > 0 { // user/password@host
		_, password, _ := strings.Cut(value[:n], "/")
		parts = append(parts, password)
	}
	if n := strings.LastIndexByte(value, '/'); len(value)-n > longLine {
		parts = append(parts, value[n+1:])
	}
	return slices.DeleteFunc(parts, func(part string) bool { return strings.HasPrefix(part, "$") })
}

const deepestPair = 3

// pair is a name and its value. The name may be lost.
type pair struct{ name, value string }

// learnPair learns the value of a name within a secret.
func (r *redactor) learnPair(p pair, depth int) {
	value := strings.Trim(p.value, " \"'`{}[]")
	if value == "" || value[0] == '$' || strings.Contains(value, "://") {
		return
	}
	if !isSecretKey(p.name) && (isPublicKey(p.name) || isOrdinary(value)) {
		return
	}
	r.learn(value)
	r.learnParts(value)
	if depth == 0 {
		return
	}
	for _, inner := range pairs(p.value) {
		if len(inner.value) < len(p.value) {
			r.learnPair(inner, depth-1)
		}
	}
}

// pairs takes NAME=VALUE,NAME=VALUE apart, also with ampersands, semicolons or
// blanks, and objects of JSON. The first name may be lost: of a longer text the
// part was cut out that begins with a secret. There is one at least.
func pairs(text string) []pair {
	text = strings.TrimSpace(text)
	if text != "" && (text[0] == '{' || text[0] == '[') {
		var tree any
		if json.Unmarshal([]byte(text), &tree) == nil {
			if found := leaves(nil, "", tree); len(found) > 0 {
				return found
			}
		}
		text = strings.TrimLeft(text, "{[ ")
	}
	var found []pair
	name, from := leadingName(text)
	for i := from; i < len(text); i++ {
		if strings.IndexByte(",;& \n", text[i]) < 0 {
			continue
		}
		next := i + len(text[i:]) - len(strings.TrimLeft(text[i:], ",;& \n"))
		after, n := leadingName(text[next:])
		if after == "" {
			i = next - 1
			continue
		}
		if name != "" || text[i] != ' ' { // a scheme with its pairs
			found = append(found, pair{name, text[from:i]})
		}
		name, from = after, next+n
		i = from - 1
	}
	return append(found, pair{name, text[from:]})
}

// leaves are the texts and numbers in a tree of JSON.
func leaves(found []pair, name string, tree any) []pair {
	switch node := tree.(type) {
	case map[string]any:
		for key, value := range node {
			found = leaves(found, key, value)
		}
	case []any:
		for _, value := range node {
			found = leaves(found, name, value)
		}
	case string:
		found = append(found, pair{name, node})
	case float64:
		found = append(found, pair{name, strconv.FormatFloat(node, 'f', -1, 64)})
	}
	return found
}

// leadingName is the name at the start of NAME=VALUE, and where the value begins.
// The equals signs at the end of base64 are none.
func leadingName(text string) (name string, from int) {
	n := 0
	for n < len(text) && n < longestName && isNameByte(text[n]) {
		n++
	}
	if n == 0 || n+1 >= len(text) || text[n] != '=' || text[n+1] == '=' || isDigit(text[0]) {
		return "", 0
	}
	return text[:n], n + 1
}

// isPublicKey knows settings that are no secrets.
func isPublicKey(name string) bool {
	for _, end := range [...]string{
		"user", "name", "host", "server", "port", "region", "zone", "env", "environment", "stage", "tag", "version",
		"image", "url", "endpoint", "protocol", "mode", "namespace", "cluster", "project", "role", "path", "file", "dir",
		"bucket", "database", "domain", "email", "type", "kind", "level", "lang", "locale", "format", "count", "size",
		"replicas", "timeout", "mechanism", "mechanisms",
	} {
		if _, ok := cutEnd(name, end); ok {
			return true
		}
	}
	return false
}

// isOrdinary knows values that errors are made of: words of configurations,
// hosts, versions, dates, regions, files.
func isOrdinary(value string) bool {
	if isPath(value) || slices.Contains(ordinaryWords(), strings.ToLower(value)) {
		return true
	}
	const longest, shortPart = 48, 3
	if len(value) > longest || !strings.ContainsAny(value, ".-_:/") {
		return false
	}
	for part := range strings.FieldsFuncSeq(value, func(c rune) bool { return strings.ContainsRune(".-_:/", c) }) {
		if len(part) <= shortPart && isLetterOrDigit(part[0]) {
			continue
		}
		if strings.Trim(part, "0123456789") != "" && strings.Trim(part[1:], "abcdefghijklmnopqrstuvwxyz") != "" {
			return false
		}
	}
	return true
}

func isLetterOrDigit(c byte) bool { return isLetter(c) || isDigit(c) }

// ordinaryWords are as long as secrets.
func ordinaryWords() []string {
	return []string{
		"latest", "default", "production", "staging", "development", "testing", "stable", "nightly", "release", "master",
		"enabled", "disabled", "present", "absent", "always", "public", "private", "internal", "localhost", "postgres",
		"mongodb", "ubuntu", "debian", "alpine", "docker", "english", "string", "boolean", "number", "system", "global",
		"primary", "replica", "standard", "premium", "service", "verbose", "warning",
	}
}
