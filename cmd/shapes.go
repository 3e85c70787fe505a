package cmd

// What secrets look like:
//
//	scheme://USER:PASSWORD@host           user information of a URL
//	password=VALUE  "token": "VALUE"      a name that says so, in any case and with
//	client_secret = VALUE                 anything before it: db_password, accessToken
//	MY_KEY=VALUE                          an assignment to a variable that holds one
//	Authorization: VALUE  X-Name: VALUE   headers, to the end of the line or quotes
//	Bearer VALUE  Basic VALUE             the same without its header
//	--token VALUE                         flags, see redact_command.go
//	ghp_VALUE, AKIAVALUE, JSON web tokens, private keys in PEM: keys by their looks
//
// A value ends at a blank, a quote, an ampersand or a semicolon. Where it is not
// certain whether something is a secret, it is hidden, except where that would
// hide what errors are made of ("unexpected token: }").

import "strings"

// The texts come from programs that may be hostile: every scanner is linear.
// Within a value that is hidden nobody looks for another name and its value,
// which would end where it does; the rest looks ahead a little way.
const (
	longestFlag     = 64
	longestUserInfo = 512 // with a slash in it; without one it ends at the slash
)

// shapes finds what looks like a secret.
func (r *redactor) shapes(spans []span, s string, spoken *vocabulary) []span {
	script := spoken != nil && strings.IndexByte(s, ' ') >= 0
	if script {
		spoken = spoken.copy() // of this script alone
	}
	hidden := 0 // up to here
	for i := 0; i < len(s); i++ {
		var p span
		switch c := s[i]; {
		case c == '=' && i >= hidden:
			p = r.assigned(s, i, spoken)
			hidden = max(hidden, p.to)
		case c == ':' && strings.HasPrefix(s[i:], "://"):
			p = userInfo(s, i+3)
		case c == ':' && i >= hidden:
			if p = described(s, i); p.from >= p.to && spoken != nil && spoken.logins {
				p = login(s, i)
			}
			hidden = max(hidden, p.to)
		case c == '-' && i >= hidden && startsWord(s, i):
			p = r.flagged(s, i, spoken)
			hidden = max(hidden, p.to)
		case isLetter(c) && startsWord(s, i):
			if p = known(s, i); p.from < p.to {
				i = p.to - 1
				break
			}
			p = statement(s, i)
			if script {
				if p.from >= p.to {
					p = piped(s, i)
				}
				spoken.hear(programAt(s, i))
			}
		}
		if p.from < p.to {
			spans = append(spans, p)
		}
	}
	return spans
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func isBlank(c byte) bool  { return c == ' ' || c == '\n' || c == '\t' }
func isQuote(c byte) bool  { return c == '"' || c == '\'' || c == '`' }

// isNameByte reports what names of settings are made of: db.password,
// user[password], X-Api-Key.
func isNameByte(c byte) bool {
	return isLetter(c) || isDigit(c) || strings.IndexByte("_-.[]", c) >= 0
}

func startsWord(s string, i int) bool {
	if i == 0 {
		return true
	}
	c := s[i-1]
	return !isLetter(c) && !isDigit(c) && c != '_' && c != '-'
}

// nameBefore returns where the name that ends before end begins.
func nameBefore(s string, end int) int {
	for end > 0 && isNameByte(s[end-1]) {
		end--
	}
	return end
}

// assigned is the value behind the equals sign at i, if its name asks for it.
func (r *redactor) assigned(s string, i int, spoken *vocabulary) span {
	end, from := i, i+1
	if i > 0 && s[i-1] == ' ' && from < len(s) && s[from] == ' ' { // name = value
		end, from = i-1, i+2
	}
	if end > 0 && s[end-1] == ']' { // config["password"]
		end--
	}
	if end > 0 && isQuote(s[end-1]) {
		end--
	}
	name := s[nameBefore(s, end):end]
	if name == "" {
		return span{}
	}
	if !r.holdsSecret(name, spoken) && !isQueryKey(s, i, name) && !isValueOf(s, end-len(name), name) {
		return span{}
	}
	if p := value(s, from); p.from < p.to && isSecretValue(name, s[p.from:p.to]) {
		return p
	}
	return span{}
}

// isValueOf knows the value of a secret whose name stands in front of it:
// {"name": "DB_PASSWORD", "value": VALUE}, ParameterKey=Password,ParameterValue=VALUE.
func isValueOf(s string, start int, name string) bool {
	if !strings.EqualFold(name, "value") && !strings.EqualFold(name, "parametervalue") {
		return false
	}
	front := s[max(0, start-longestFlag):start]
	before := strings.TrimRight(front, " \n\t,\"'\\")
	if !strings.ContainsAny(front[len(before):], "\n,") { // a bad password value: what is bad
		return false
	}
	before = before[nameBefore(before, len(before)):]
	return isSecretKey(before) || isVariable(before) && isSecretName(before)
}

// isQueryKey knows ?key=VALUE with a value that is too long for a name.
func isQueryKey(s string, i int, name string) bool {
	at := i - len(name) - 1
	if name != "key" || at < 0 || s[at] != '?' && s[at] != '&' {
		return false
	}
	p := value(s, i+1)
	return p.to-p.from >= longKey
}

const longKey = 20

// isDirectory knows the two that end as passwords do.
func isDirectory(name string) bool { return name == "PWD" || name == "OLDPWD" }

// isVariable reports whether a name is written as those of the environment.
func isVariable(name string) bool {
	return len(name) >= 3 && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}

// described is the value behind the colon at i: of a quoted key, or of a header.
func described(s string, i int) span {
	if i > 0 && isQuote(s[i-1]) {
		end := i - 1
		if end > 0 && s[end-1] == '\\' {
			end--
		}
		start := nameBefore(s, end)
		name := s[start:end]
		if from := skipSpaces(s, i+1); name == "auth" && from < len(s) && isQuote(s[from]) { // of docker's configuration
			return credential(s, from+1)
		}
		if !isSecretKey(name) && !isSecretHeader(name) && !isValueOf(s, start, name) || endsPath(s, start, end) {
			return span{}
		}
		return value(s, skipSpaces(s, i+1))
	}
	start := nameBefore(s, i)
	name := s[start:i]
	from := skipSpaces(s, i+1)
	switch {
	case isSecretHeader(name), strings.Contains(name, "-") && name[0] != '-' && isSecretKey(name):
		return span{from, headerEnd(s, start, from)}
	case isSpokenKey(name) && from > i+1 && !endsPath(s, start, i):
		if strings.HasPrefix(s[from:], "YES)") || strings.HasPrefix(s[from:], "NO)") { // mysql's (using password: YES)
			return span{}
		}
		return value(s, from)
	case from < len(s) && isQuote(s[from]) && isObjectKey(name): // {pwd: "VALUE"}
		return value(s, from)
	case from > i+1 && isValueOf(s, start, name):
		return value(s, from)
	}
	return span{}
}

// endsPath reports whether the name from start to end is the last part of a path:
// "open /etc/passwd: permission denied" tells no secret.
func endsPath(s string, start, end int) bool {
	if start == 0 || s[start-1] != '/' {
		return false
	}
	for start > 0 && (s[start-1] == '/' || isNameByte(s[start-1])) {
		start--
	}
	return s[start] == '/' && isPath(s[start:end])
}

func skipSpaces(s string, i int) int {
	for i < len(s) && s[i] == ' ' {
		i++
	}
	return i
}

// headerEnd is the end of the header's line, or the quote that closes what was
// opened before its name.
func headerEnd(s string, start, from int) int {
	quote := byte('\n')
	if start > 0 && isQuote(s[start-1]) {
		quote = s[start-1]
	}
	for from < len(s) && s[from] != '\n' && s[from] != quote {
		from++
	}
	return from
}

// value is the value that begins at i, without its quotes.
func value(s string, i int) span {
	if i+1 < len(s) && s[i] == '\\' && isQuote(s[i+1]) { // quotes within quotes
		closing := strings.Index(s[i+2:], s[i:i+2])
		if closing >= 0 {
			return span{i + 2, i + 2 + closing}
		}
		return span{i + 2, len(s)}
	}
	if i < len(s) && isQuote(s[i]) {
		end := i + 1
		for end < len(s) && s[end] != s[i] {
			if s[end] == '\\' {
				end++
			}
			end++
		}
		return span{i + 1, min(end, len(s))}
	}
	end := i
	for end < len(s) && !isBlank(s[end]) && s[end] != '&' && s[end] != ';' {
		if isQuote(s[end]) {
			n := quotedPart(s, i, end)
			if n == 0 {
				break
			}
			end += n
			continue
		}
		end++
	}
	if end < len(s) && isQuote(s[end]) && end > i && s[end-1] == '\\' {
		end--
	}
	return span{i, end}
}

// quotedPart is the length of what is in quotes from the one at on, in the middle
// of a value: foo='a b'. It is 0 where that one closes what was opened before.
func quotedPart(s string, from, at int) int {
	if at == from || s[at-1] != '=' && s[at-1] != ':' {
		return 0
	}
	end := at + 1
	for last := min(len(s), at+longestPipe); end < last && s[end] != '\n'; end++ {
		if s[end] == s[at] {
			return end + 1 - at
		}
	}
	return 0
}

// login is the user and the password that stand before a host, as in a URL
// without a scheme: user:password@host. The colon is at i.
func login(s string, i int) span {
	start, end, at := nameBefore(s, i), i+1, 0
	for last := min(len(s), i+longestUserInfo); end < last && !endsURL(s[end]); end++ {
		if s[end] == '@' {
			at = end
		}
	}
	if start > 0 && (s[start-1] == '@' || s[start-1] == '/') { // another address
		return span{}
	}
	if start == i || at <= i+1 || at+1 >= end || strings.HasPrefix(s[i:], "://") || !isLetterOrDigit(s[at+1]) {
		return span{}
	}
	return span{start, at}
}

// flagged is the value of the flag at i. The arguments of a real command line
// come one by one; this is for lines that hold a command.
func (r *redactor) flagged(s string, i int, spoken *vocabulary) span {
	if strings.HasPrefix(s[i:], "-----BEGIN ") {
		return privateKey(s, i)
	}
	end := i
	for last := min(len(s), i+longestFlag); end < last && !isBlank(s[end]) && s[end] != '='; {
		end++
	}
	flag := s[i:end]
	switch {
	case spoken != nil && strings.HasPrefix(flag, "-H") && i+2 < len(s) && isQuote(s[i+2]):
		return headerIn(s, value(s, i+2))
	case end < len(s) && s[end] == ' ' && spoken != nil && isHeaderFlag(flag):
		return headerIn(s, value(s, skipSpaces(s, end)))
	}
	if n := r.attached(flag, spoken); n > 0 {
		return value(s, i+n)
	}
	if end < len(s) && s[end] == ' ' && r.takesSecret(flag, spoken) {
		return value(s, skipSpaces(s, end))
	}
	if end < len(s) && s[end] == ' ' && spoken != nil && spoken.logins && isCertificateFlag(flag) {
		return afterColon(s, value(s, skipSpaces(s, end)))
	}
	return span{}
}

// afterColon is the password of FILE:PASSWORD at p, if there is one.
func afterColon(s string, p span) span {
	file := s[p.from:p.to]
	n := strings.LastIndexByte(file, ':')
	if n < 2 || strings.HasPrefix(file, "pkcs11:") || strings.Contains(file, "://") { // C:\FILE
		return span{}
	}
	return span{p.from + n + 1, p.to}
}

// headerIn is the value of the header that is at p.
func headerIn(s string, p span) span {
	n := headerValue(s[p.from:p.to])
	if n == 0 {
		return span{}
	}
	return span{p.from + n, p.to}
}

// privateKey is everything between the lines that begin and end it; what was
// broken off is hidden to the end.
func privateKey(s string, i int) span {
	head, _, ok := strings.Cut(s[i+len("-----BEGIN "):], "-----")
	if !ok || !strings.HasSuffix(head, "PRIVATE KEY") || strings.Contains(head, "\n") {
		return span{}
	}
	from := i + len("-----BEGIN ") + len(head) + len("-----")
	if n := strings.Index(s[from:], "-----END"); n >= 0 {
		return span{from, from + n}
	}
	return span{from, len(s)}
}

// userInfo is what stands before the host in a URL whose authority begins at i.
func userInfo(s string, i int) span {
	if i < 4 || !isLetter(s[i-4]) && !isDigit(s[i-4]) {
		return span{}
	}
	end, at := i, -1
	for end < len(s) && !endsURL(s[end]) && strings.IndexByte("/?#", s[end]) < 0 {
		if s[end] == '@' {
			at = end
		}
		end++
	}
	if at < 0 && hasOddPort(s[i:end]) { // a password with a slash that nobody escaped
		for last := min(len(s), i+longestUserInfo); end < last && !endsURL(s[end]); end++ {
			if s[end] == '@' {
				at = end
			}
		}
	}
	return span{i, max(i, at)}
}

func endsURL(c byte) bool { return isBlank(c) || isQuote(c) || c == '<' || c == '>' || c == '\\' }

// hasOddPort reports whether what should be host and port cannot be.
func hasOddPort(authority string) bool {
	authority = authority[strings.IndexByte(authority, ']')+1:]
	_, port, ok := strings.Cut(authority, ":")
	return ok && strings.Trim(port, "0123456789") != ""
}

// isSecretKey reports whether a setting's name ends as those of secrets do,
// whatever its case and its separators.
func isSecretKey(name string) bool {
	name = strings.TrimRight(name, "0123456789") // password2
	for _, end := range [...]string{
		"password", "passwd", "passphrase", "pwd", "token", "secret", "apikey", "accesskey", "secretkey", "privatekey",
		"authkey", "accountkey", "signingkey", "encryptionkey", "passcode", "credential", "credentials", "signature", "sonarlogin",
	} {
		if _, ok := cutEnd(name, end); ok {
			return true
		}
	}
	for _, word := range [...]string{"pass", "pw", "sig", "psk", "otp"} { // the ends of other words too
		if rest, ok := cutEnd(name, word); ok && (rest == "" || !isLetter(rest[len(rest)-1])) {
			return true
		}
	}
	return false
}

// isSpokenKey reports names that are followed by a colon and their secret, and
// not by what is wrong with it.
func isSpokenKey(name string) bool {
	for _, end := range [...]string{"password", "passwd", "passphrase", "apikey", "accesskey", "secretkey", "privatekey"} {
		if _, ok := cutEnd(name, end); ok {
			return true
		}
	}
	return false
}

// isObjectKey reports names that are followed by a colon and their secret in
// quotes, and not by what a sentence says of it: Unexpected token: "}".
func isObjectKey(name string) bool {
	for _, word := range [...]string{"token", "secret", "signature", "credential", "credentials", "pass", "otp"} {
		if strings.EqualFold(name, word) {
			return false
		}
	}
	return isSecretKey(name)
}

// cutEnd cuts word, given in lower case, off the end of name, overlooking case
// and separators.
func cutEnd(name, word string) (rest string, ok bool) {
	n := len(name)
	for i := len(word) - 1; i >= 0; n-- {
		if n == 0 {
			return "", false
		}
		switch c := name[n-1]; {
		case !isLetter(c) && !isDigit(c):
		case c|0x20 == word[i]:
			i--
		default:
			return "", false
		}
	}
	return name[:n], true
}

func isSecretHeader(name string) bool {
	if len(name) > 2 && name[0]|0x20 == 'x' && name[1] == '-' {
		return true
	}
	for _, h := range [...]string{"authorization", "proxy-authorization", "cookie", "set-cookie"} {
		if strings.EqualFold(name, h) {
			return true
		}
	}
	return false
}

// known is the key at i, if one is known to look like that.
func known(s string, i int) span {
	word := s[i:]
	for _, scheme := range [...]string{"bearer ", "basic "} {
		if len(word) > len(scheme) && strings.EqualFold(word[:len(scheme)], scheme) {
			from := i + skipSpaces(word, len(scheme))
			return credential(s, from)
		}
	}
	for _, hook := range [...]string{"hooks.slack.com/services/", "api/webhooks/", "webhook.office.com/", "api.telegram.org/bot"} { // addresses that are secrets
		if strings.HasPrefix(word, hook) {
			p := value(s, i+len(hook))
			if n := strings.IndexByte(s[p.from:p.to], '/'); n > 0 && strings.HasSuffix(hook, "/bot") {
				p.to = p.from + n
			}
			return p
		}
	}
	least := leastKey(word)
	if least == 0 {
		return span{}
	}
	n := 0
	for n < len(word) && (isLetter(word[n]) || isDigit(word[n]) || strings.IndexByte("_-.", word[n]) >= 0) {
		n++
	}
	key := strings.TrimRight(word[:n], ".-")
	if len(key) < least || strings.HasPrefix(key, "eyJ") && strings.Count(key, ".") < 2 {
		return span{}
	}
	return span{i, i + len(key)}
}

// credential is what follows Bearer or Basic. Words of a sentence have no
// digits in them.
func credential(s string, from int) span {
	const shortest = 12
	to, digits := from, false
	for to < len(s) && (isLetter(s[to]) || isDigit(s[to]) || strings.IndexByte("._~+/=-", s[to]) >= 0) {
		digits = digits || isDigit(s[to])
		to++
	}
	if to-from < shortest || !digits {
		return span{}
	}
	return span{from, to}
}

// leastKey returns the least length of a key that begins as word does, 0 when
// no key does.
func leastKey(word string) int {
	switch word[0] {
	case 'A':
		return leastOf(word, 20, "AKIA", "ASIA", "AIza", "AGE-SECRET-KEY-")
	case 'S':
		return leastOf(word, 40, "SG.")
	case 'd':
		return leastOf(word, 24, "dckr_pat_", "dop_v1_", "doo_v1_")
	case 'e':
		return leastOf(word, 36, "eyJ")
	case 'g':
		return leastOf(word, 20, "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_",
			"glpat-", "gldt-", "glrt-", "glptt-", "glcbt-", "glagent-")
	case 'h':
		return leastOf(word, 20, "hf_", "hvs.", "hvb.")
	case 'l':
		return leastOf(word, 24, "lin_api_")
	case 'n':
		return leastOf(word, 36, "npm_")
	case 'p':
		return leastOf(word, 24, "pypi-Ag", "pul-")
	case 'r':
		return leastOf(word, 16, "rk_live_", "rk_test_")
	case 's':
		return leastOf(word, 20, "sk_live_", "sk_test_", "sk-", "shpat_", "shpss_", "sbp_", "sq0csp-")
	case 't':
		return leastOf(word, 20, "tskey-")
	case 'w':
		return leastOf(word, 20, "whsec_")
	case 'x':
		return leastOf(word, 16, "xoxb-", "xoxa-", "xoxp-", "xoxr-", "xoxs-", "xoxe-", "xapp-")
	case 'y':
		return leastOf(word, 20, "ya29.")
	}
	return 0
}

func leastOf(word string, least int, prefixes ...string) int {
	for _, p := range prefixes {
		if strings.HasPrefix(word, p) {
			return least
		}
	}
	return 0
}
