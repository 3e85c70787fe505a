package cmd

// Where tools that have no rules file, and some that have one, take secrets. A
// user adds to it with secrets: in a rules file.

import (
	"path"
	"slices"
	"strings"
)

// secretFlags are the secret flags of a tool, beyond those of its rules file.
func secretFlags(tool string) []string {
	switch tool {
	case "sshpass", "rdesktop", "7z", "7za", "7zz", "rar", "unrar", "useradd", "usermod", "crane", "oras", "nerdctl", "helm", "mongoimport", "mongoexport", "mongostat", "ncftpput", "ncftpget", "nuget", "security", "altool", "racadm", "redfishtool", "login":
		return []string{"-p"}
	case "mariadb", "mariadb-dump", "mariadb-admin", "mysqlimport", "mysqlcheck", "mysqlshow", "mysqlpump", "mysqlslap", "mysqlbinlog", "mycli", "mydumper":
		return []string{"-p"}
	case "mosquitto_pub", "mosquitto_sub", "mosquitto_rr": //nolint:misspell // the broker's name is no word
		return []string{"-P"}
	case "sqlcmd", "bcp", "zip", "zipcloak", "unzip", "ipmitool", "knife", "osql", "isql", "p4":
		return []string{"-P"}
	case "http", "https", "xh", "xhs":
		return []string{"-a", "--auth"}
	case "curlie":
		return []string{"-u", "--user"}
	case "smbclient", "rpcclient", "smbget", "winexe", "net":
		return []string{"-U", "--user"}
	case "snmpget", "snmpset", "snmpwalk", "snmpgetnext", "snmpbulkwalk", "snmptrap", "snmptable", "snmpbulkget":
		return []string{"-c", "-A", "-X"}
	case "keytool", "jarsigner", "apksigner":
		return []string{"-storepass", "-keypass", "-srcstorepass", "-deststorepass", "--ks-pass", "--key-pass"}
	case "ssh-keygen", "cryptsetup":
		return []string{"-N", "-P"}
	case "plink", "pscp", "psftp":
		return []string{"-pw"}
	case "pkcs11-tool", "pkcs15-tool", "softhsm2-util", "yubico-piv-tool", "ykman":
		return []string{"--pin", "--so-pin", "--puk", "-P", "-p"}
	case "vercel", "netlify", "codecov", "codecovcli", "ghr":
		return []string{"-t"}
	case "act", "github-release":
		return []string{"-s"}
	case "ansible", "ansible-console", "ansible-pull":
		return []string{"-e", "--extra-vars"}
	case "aws":
		return []string{"--value", "--plaintext", "--auth-parameters"}
	case "ctr":
		return []string{"-u", "--user"}
	case "gitlab-runner":
		return []string{"-r"}
	case "swift":
		return []string{"-K"}
	case "kubectl", "oc":
		return []string{"--from-literal"}
	case "gem":
		return []string{"-k", "--key"}
	}
	return nil
}

// otherLetters are the flags of one letter of a tool with a value that is no
// secret. In -uapp of mysql there is no -p.
func otherLetters(tool string) string {
	switch tool {
	case "curl":
		return "AcCdDeEFHmKoPQrtTwxXyYz"
	case "mysql", "mysqldump", "mysqladmin", "mysqlimport", "mysqlcheck", "mysqlshow", "mariadb", "mariadb-dump", "mariadb-admin":
		return "DehPSu"
	}
	return ""
}

// takesLogins knows those to whom user:password@host is an address.
func takesLogins(tool string) bool {
	switch tool {
	case "curl", "curlie", "wget", "aria2c", "lftp", "mysqlsh":
		return true
	}
	return false
}

// isCertificateFlag knows flags of theirs with FILE:PASSWORD.
func isCertificateFlag(flag string) bool {
	return flag == "-E" || flag == "--cert" || flag == "--proxy-cert"
}

// takesNamed knows flags with two arguments, a name and its value: jq --arg.
func takesNamed(flag string) bool {
	return flag == "--arg" || flag == "--argjson" || flag == "--stringparam"
}

// operands say that those behind a word (any, if empty) are secret from the
// given one on; the last alone if that is 0.
type operands struct {
	word string
	from int
}

// secretOperands returns which arguments are secrets for their place. The tool
// may stand behind others.
func secretOperands(argv []string) map[int]bool {
	var found map[int]bool
	for at, arg := range argv {
		if len(arg) > longestName {
			continue
		}
		name := path.Base(arg)
		for _, o := range operandsOf(name) {
			for _, i := range o.in(argv, at) {
				if found == nil {
					found = map[int]bool{}
				}
				found[i] = true
			}
		}
	}
	return found
}

func operandsOf(tool string) []operands {
	switch tool {
	case "vault":
		return []operands{{word: "login", from: 1}, {word: "put", from: 2}, {word: "patch", from: 2}, {word: "write", from: 2}, {word: "unseal", from: 1}, {word: "unwrap", from: 1}}
	case "snyk":
		return []operands{{word: "auth", from: 1}}
	case "cargo", "wandb":
		return []operands{{word: "login", from: 1}}
	case "heroku":
		return []operands{{word: "auth:token", from: 1}}
	case "ansible-vault":
		return []operands{{word: "encrypt_string", from: 1}}
	case "cf":
		return []operands{{word: "auth", from: 2}}
	case "cloudflared":
		return []operands{{word: "install", from: 1}}
	case "fly", "flyctl":
		return []operands{{word: "set", from: 1}}
	case "glab", "user-secrets":
		return []operands{{word: "set", from: 2}}
	case "ngrok":
		return []operands{{word: "authtoken", from: 1}}
	case "nuget":
		return []operands{{word: "setapikey", from: 1}}
	case "rclone":
		return []operands{{word: "obscure", from: 1}}
	case "redis-cli", "valkey-cli":
		return []operands{{word: "auth", from: 1}, {word: "hello", from: 1}}
	case "rabbitmqctl":
		return []operands{{word: "add_user", from: 2}, {word: "change_password", from: 2}, {word: "authenticate_user", from: 2}}
	case "mc":
		return []operands{{word: "set", from: 3}, {word: "add", from: 3}}
	case "poetry":
		return []operands{{word: "config", from: 2}}
	case "wpa_passphrase":
		return []operands{{from: 2}}
	case "net":
		return []operands{{word: "user", from: 2}}
	case "ipmitool":
		return []operands{{word: "password", from: 1}}
	case "smbclient", "smbpasswd":
		return []operands{{from: 2}}
	case "htpasswd":
		return []operands{{from: 0}}
	case "sqlplus", "sqlldr", "expdp", "impdp", "rman":
		return []operands{{from: 1}}
	}
	return nil
}

// takesSettings knows those that take a setting's name and its value anywhere.
func takesSettings(program string) bool {
	switch path.Base(program) {
	case "nmcli", "mysqladmin", "mariadb-admin", "wpa_cli", "pppd", "ipmitool":
		return true
	}
	return false
}

// isReader knows those whose arguments are prose, or what they look for.
func isReader(program string) bool {
	switch path.Base(program) {
	case "echo", "printf", "logger", "grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack":
		return true
	}
	return false
}

// setsKey reports whether words before a setting's name say that its value
// follows: tool config KEY, tool x set KEY.
func setsKey(words []string) bool {
	config := false
	for _, word := range words {
		switch strings.ToLower(word) {
		case "set", "hset", "put", "write", "mod", "modify", "config:set", "env:set":
			return true
		case "config", "configure":
			config = true
		case "create", "get", "delete", "remove", "rm", "unset", "inspect": // of a thing that is called a config
			config = false
		}
	}
	return config
}

// isSecretSetting knows settings of hosts, whose names say what they are in front:
// github-oauth.HOST, pypi-token.NAME.
func isSecretSetting(key string) bool {
	kind, _, ok := strings.Cut(key, ".")
	if !ok {
		return false
	}
	switch kind {
	case "http-basic", "bearer", "github-oauth", "gitlab-oauth", "bitbucket-oauth", "custom-headers":
		return true
	}
	return strings.HasSuffix(kind, "-token")
}

// isScript reports whether argv[i] may be a shell's command, in which a blank ends
// a value.
func isScript(argv []string, i int) bool {
	if strings.IndexByte(argv[i], ' ') < 0 {
		return false
	}
	before := argv[i-1]
	if before == "--command" || before == "--run" || before == "--" || len(before) > 1 && before[0] == '-' && before[1] != '-' && before[len(before)-1] == 'c' {
		return true
	}
	return slices.ContainsFunc(argv[:i], func(word string) bool {
		switch path.Base(word) {
		case "ssh", "mosh", "eval", "watch", "parallel":
			return true
		}
		return false
	})
}

// isShare knows names of network shares: \\host\share.
func isShare(word string) bool { return strings.HasPrefix(word, `\\`) }

// isNetUse reports whether a share is connected to: net use [z:] \\host\share
// [PASSWORD].
func isNetUse(words []string) bool {
	for i := 1; i < len(words); i++ {
		program := strings.TrimSuffix(path.Base(words[i-1]), ".exe")
		if strings.EqualFold(words[i], "use") && strings.EqualFold(program, "net") {
			return true
		}
	}
	return false
}

// programAt is the name that begins at i, unless it is a part of an address or of
// a file's name and so no program.
func programAt(s string, i int) string {
	name := wordAt(s, i)
	if end := i + len(name); end < len(s) && strings.IndexByte(":=@/", s[end]) >= 0 || i > 0 && s[i-1] == '.' {
		return ""
	}
	for at := i - 1; at >= 0 && i-at < longestPath && !isBlank(s[at]) && !isQuote(s[at]); at-- {
		if s[at] == ':' || s[at] == '@' {
			return ""
		}
	}
	return name
}

const longestPath = 128

// in returns which arguments behind argv[at] are meant.
func (o operands) in(argv []string, at int) []int {
	var found []int
	seen := o.word == ""
	n := 0
	for i := at + 1; i < len(argv); i++ {
		switch arg := argv[i]; {
		case strings.HasPrefix(arg, "-"):
		case !seen:
			seen = strings.EqualFold(arg, o.word)
		default:
			if n++; n >= o.from {
				found = append(found, i)
			}
		}
	}
	if o.from == 0 && len(found) > 1 {
		return found[len(found)-1:]
	}
	return found
}

// piped is what a script prints into a program that reads its password from
// there: echo VALUE | docker login --password-stdin.
func piped(s string, i int) span {
	name := wordAt(s, i)
	if name != "echo" && name != "printf" {
		return span{}
	}
	from := i + len(name)
	text, reader, ok := strings.Cut(s[from:min(len(s), from+longestPipe)], "|")
	if !ok || !readsSecret(reader) {
		return span{}
	}
	to := from + len(strings.TrimRight(text, " "))
	from += len(text) - len(strings.TrimLeft(text, " "))
	for from < to && (s[from] == '-' || name == "printf" && strings.HasPrefix(strings.Trim(s[from:to], "'\""), "%")) { // echo -n, printf %s
		word := strings.IndexByte(s[from:to], ' ')
		if word < 0 {
			break
		}
		from += word + 1
	}
	return span{from, to}
}

// readsSecret knows programs that read a secret from where a script prints it.
func readsSecret(script string) bool {
	for _, reader := range [...]string{"-stdin", "sudo -S", "--with-token", "chpasswd", "kinit", "--passphrase-fd 0", "secret set", "secret put"} {
		if strings.Contains(script, reader) {
			return true
		}
	}
	return false
}

const longestPipe = 512

// wordAt is the name that begins at i.
func wordAt(s string, i int) string {
	end := i
	for end < len(s) && end-i <= longestName && (isNameByte(s[end]) || s[end] == '+') {
		end++
	}
	return s[i:end]
}
