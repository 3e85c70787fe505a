package cmd

// What a command line says is a secret:
//
//   - values of the tool's secret flags (listed in its rules, or below in
//     redact_tools.go), also of tools that a script, ssh or docker exec runs;
//   - values of any --password, --token, --secret, --api-key and their kin;
//   - what follows a word that says so, where such a word is known to name a
//     setting: nmcli ... password VALUE, TOOL config set password VALUE. Elsewhere
//     it is a file, a pattern, the name of a script;
//   - values of headers that are not standard ones.
//
// Too much is hidden rather than too little, but for what cannot be a secret and
// would be missed: published ports. What is found is looked for in everything
// else: programs print their arguments.

import (
	"path"
	"slices"
	"strings"

	"github.com/retryx/retryx/classify"
)

// vocabulary is what tools call their secrets.
type vocabulary struct {
	letters string   // flags of one letter
	others  string   // those of one letter that take a value, too
	flags   []string // longer ones, with their dashes
	logins  bool     // addresses may have a user and a password without a scheme
}

// add adds flags as their tool writes them ("-u", "--user").
func (v *vocabulary) add(flags []string) {
	for _, f := range flags {
		switch {
		case len(f) == 2 && f[0] == '-' && f[1] != '-':
			if strings.IndexByte(v.letters, f[1]) < 0 {
				v.letters += f[1:]
			}
		case !slices.Contains(v.flags, f):
			v.flags = append(v.flags, f)
		}
	}
}

// hear adds what the tool of that name calls its secrets, if it is one.
func (v *vocabulary) hear(name string) {
	if name == "" || len(name) > longestName || name[0] == '-' || strings.ContainsAny(name, "=:, \n") {
		return
	}
	name = path.Base(name)
	v.add(classify.Read([]string{name}).SecretFlags)
	v.add(secretFlags(name))
	v.others += otherLetters(name)
	if name == "compose" { // docker's, whose -p is a project
		v.letters = strings.ReplaceAll(v.letters, "p", "")
	}
	v.logins = v.logins || takesLogins(name)
}

// longestName bounds what is looked up.
const longestName = 48

func (v *vocabulary) copy() *vocabulary {
	if v == nil {
		return nil
	}
	return &vocabulary{letters: v.letters, others: v.others, flags: slices.Clip(v.flags), logins: v.logins}
}

// spoken starts the vocabulary of a command line.
func (r *redactor) spoken() *vocabulary {
	if r == nil {
		return &vocabulary{}
	}
	return r.tool.copy()
}

// argv returns the command line with its secrets hidden.
func (r *redactor) argv(argv []string) []string {
	if r != nil && len(r.unread) > 1 {
		r.read()
	}
	out := make([]string, len(argv))
	r.arguments(argv, func(i int, arg string, spans []span, spoken *vocabulary) {
		out[i] = r.hide(masked(arg, spans), spoken)
	})
	return out
}

// name is a program's name, after which a budget may be called and which stands
// in titles. A command given in one word is a name, too.
func (r *redactor) name(tool string) string {
	if strings.IndexByte(tool, ' ') < 0 {
		return tool
	}
	return r.line(tool, nameLimit)
}

// script is text for what may hold a shell's commands.
func (r *redactor) script(s string) string {
	r.settle()
	return r.hide(printable(s), r.spoken())
}

// observe remembers a command line, to know its secrets elsewhere, and that of
// the command behind its wrappers, where those had to be taken apart: in
// sh -c 'COMMAND'. They are read when they are needed first, which in a success
// at the first attempt is never.
func (r *redactor) observe(argv, inner []string) {
	if r == nil { // as elsewhere, it hides what shows by itself
		return
	}
	r.unread = append(r.unread, argv)
	if len(inner) > 0 && len(argv) > 0 && &inner[len(inner)-1] != &argv[len(argv)-1] {
		r.unread = append(r.unread, inner)
	}
}

// settle learns the secrets of the command lines that were observed, and what is
// needed for texts alone.
func (r *redactor) settle() {
	if r == nil {
		return
	}
	r.read()
	r.encode()
}

func (r *redactor) read() {
	unread := r.unread
	r.unread = nil
	for _, argv := range unread {
		r.arguments(argv, func(i int, arg string, spans []span, spoken *vocabulary) {
			if i > 0 || strings.IndexByte(arg, ' ') >= 0 { // or a whole command in quotes
				spans = r.shapes(spans, arg, spoken)
			}
			for _, p := range spans {
				r.learnSpan(arg[:p.from], arg[p.from:p.to])
			}
		})
	}
}

// arguments tells of each argument, printable, and of the spans in it that its
// place or its form make secret. What else is in it is left to hide.
func (r *redactor) arguments(argv []string, tell func(i int, arg string, spans []span, spoken *vocabulary)) {
	spoken := r.spoken()
	operands := secretOperands(argv)
	for i, arg := range argv {
		arg = printable(arg)
		whole := span{0, len(arg)}
		var spans []span
		switch {
		case i == 0:
		case operands[i]:
			spans = []span{whole}
		case i > 1 && r.takesSecret(argv[i-1], spoken):
			if !isPorts(arg) {
				spans = []span{whole}
			}
		case announced(argv, i):
			spans = []span{whole}
		case spoken.logins && i > 1 && isCertificateFlag(argv[i-1]):
			spans = []span{afterColon(arg, whole)}
		case i > 1 && isHeaderFlag(argv[i-1]):
			if n := headerValue(arg); n > 0 {
				spans = []span{{n, len(arg)}}
			}
		default:
			spans = r.argument(arg, spoken)
			if spans == nil && !isScript(argv, i) {
				spans = r.assignment(arg, spoken)
			}
		}
		tell(i, arg, spans, spoken)
		spoken.hear(arg)
	}
}

// argument finds the secret of an argument that says itself what it is.
func (r *redactor) argument(arg string, spoken *vocabulary) []span {
	for _, flag := range [...]string{headerCluster(arg), "--header=", "--proxy-header="} {
		if header, ok := strings.CutPrefix(arg, flag); ok && flag != "" {
			if n := headerValue(header); n > 0 {
				return []span{{len(flag) + n, len(arg)}}
			}
		}
	}
	if n := r.attached(arg, spoken); n > 0 && !isPorts(arg[n:]) {
		return []span{{n, len(arg)}}
	}
	return nil
}

func isHeaderFlag(arg string) bool {
	return arg == "--header" || arg == "--proxy-header" || arg != "" && headerCluster(arg) == arg
}

// headerCluster is the -H at the start of an argument, alone or behind the
// letters of curl that take no value: -sSfH. It is empty where there is none.
func headerCluster(arg string) string {
	if len(arg) < 2 || arg[0] != '-' {
		return ""
	}
	n := 1 + len(arg[1:]) - len(strings.TrimLeft(arg[1:], "sSfLkvigGjlnNOqRaB0123456#"))
	if n >= len(arg) || arg[n] != 'H' {
		return ""
	}
	return arg[:n+1]
}

// headerValue returns where in a header its value begins, 0 if that may be
// shown.
func headerValue(header string) int {
	name, value, ok := strings.Cut(header, ":")
	bare := strings.TrimLeft(value, " ")
	if !ok || strings.TrimSpace(value) == "" || isStandardHeader(strings.TrimSpace(name)) {
		return 0
	}
	if value[0] == '/' { // another tool's -H: host:/path, ldap://host
		return 0
	}
	return len(header) - len(bare)
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

// isPorts reports whether a value is a published port, as in -p 8080:80, where
// docker login has a password.
func isPorts(value string) bool {
	for _, protocol := range [...]string{"/tcp", "/udp"} {
		value = strings.TrimSuffix(value, protocol)
	}
	return strings.Contains(value, ":") && strings.Trim(value, "0123456789:.-") == ""
}

// announced reports whether the arguments before argv[i], none of them a flag for
// it, say that it is a secret: nmcli dev wifi connect HOME password VALUE.
func announced(argv []string, i int) bool {
	if i < 2 || argv[i] == "" || argv[i][0] == '-' || isReader(argv[0]) {
		return false
	}
	key, before := argv[i-1], argv[max(0, i-1-longestSetting):i-1]
	switch {
	case slices.ContainsFunc(argv[max(0, i-longestNetUse):i], isShare) && isNetUse(before):
		return argv[i][0] != '/'
	case takesNamed(argv[i-2]):
		return isSecretKey(key)
	case key == "", key[0] == '-', isPath(key), isPath(argv[i]), strings.Contains(argv[i], "://"):
		return false
	case isSecretKey(key), isSecretSetting(key), isSecretSetting(argv[i-2]):
		if setsKey(before) {
			return true
		}
	}
	if !announces(key) {
		return false
	}
	if slices.ContainsFunc(before, takesSettings) {
		asked := before[len(before)-1]
		return asked != "-g" && asked != "--get-values"
	}
	return setsKey(before)
}

// How far in front of a secret what announces it may stand, in words.
const (
	longestSetting = 48
	longestNetUse  = 4
)

// announces reports whether a word that is no flag is what a secret is called.
func announces(word string) bool {
	if word == "" || word[0] == '-' || strings.ContainsAny(word, "= \n") {
		return false
	}
	if isSpokenKey(word) {
		return true
	}
	if word == "_auth" {
		return true
	}
	for _, end := range [...]string{"psk", "presharedkey", "wepkey0", "requirepass", "masterauth", "authtoken"} {
		if rest, ok := cutEnd(word, end); ok && (rest == "" || !isLetter(rest[len(rest)-1])) {
			return true
		}
	}
	return false
}

// takesSecret reports whether arg is a flag whose value, a secret, comes next.
func (r *redactor) takesSecret(arg string, spoken *vocabulary) bool {
	if len(arg) < 2 || arg[0] != '-' || strings.IndexByte(arg, '=') > 0 {
		return false
	}
	if r.isSecretFlag(arg, spoken) {
		return !spoken.isAttached(arg)
	}
	n := spoken.letter(arg)
	return n > 0 && n == len(arg)
}

// attached returns where in arg, a flag with its value, the secret begins, 0
// for nowhere: --user=NAME:PASSWORD, -pPASSWORD.
func (r *redactor) attached(arg string, spoken *vocabulary) int {
	if len(arg) < 3 || arg[0] != '-' {
		return 0
	}
	if name, _, ok := strings.Cut(arg, "="); ok && len(arg) > len(name)+1 {
		if r.isSecretFlag(name, spoken) && !spoken.isAttached(name) {
			return len(name) + 1
		}
	}
	if r.isSecretFlag(arg, spoken) && !spoken.isAttached(arg) {
		return 0 // its value comes next
	}
	if n := spoken.letter(arg); n < len(arg) {
		return n
	}
	return 0
}

// isAttached reports whether arg, which looks like a long flag, is a short one
// with its secret: mysql's -pmypassword ends as secret flags do. A whole word
// (-password) is a flag for all that.
func (v *vocabulary) isAttached(arg string) bool {
	if v == nil || len(arg) < 3 || arg[1] == '-' || slices.Contains(v.flags, arg) {
		return false
	}
	switch arg[1:] {
	case "password", "passwd", "passphrase", "pass", "token", "secret", "auth":
		return false
	}
	return strings.IndexByte(v.letters, arg[1]) >= 0
}

// letter returns where in a cluster of short flags the value of a secret one
// begins, 0 for nowhere. What follows another that takes a value is that value.
func (v *vocabulary) letter(arg string) int {
	if v == nil || v.letters == "" || len(arg) < 2 || arg[1] == '-' || arg == "-key" || arg == "-keyout" || arg == "-keyform" {
		return 0
	}
	for i := 1; i < len(arg) && isLetter(arg[i]); i++ {
		if strings.IndexByte(v.letters, arg[i]) >= 0 {
			return i + 1
		}
		if strings.IndexByte(v.others, arg[i]) >= 0 {
			return 0
		}
	}
	return 0
}

// isSecretFlag reports whether flag, of more than one letter, takes a secret in
// this tool or in any.
func (r *redactor) isSecretFlag(flag string, spoken *vocabulary) bool {
	switch {
	case namesSecret(flag), r != nil && slices.Contains(r.tool.flags, flag):
		return true
	}
	return spoken != nil && slices.Contains(spoken.flags, flag)
}

// namesSecret knows --password and its kin in any tool, and -password in tools
// that write long flags with one dash.
func namesSecret(flag string) bool {
	name := strings.TrimLeft(flag, "-")
	if len(name) < len("otp") || len(flag) == len(name) || len(flag) == len(name)+1 && strings.Contains(name, ":") {
		return false
	}
	for _, question := range [...]string{"no-", "with-", "ask-", "show-"} { // these take no value
		if strings.HasPrefix(name, question) {
			return false
		}
	}
	return isSecretKey(name) || name == "auth" || name == "bearer" || name == "creds"
}
