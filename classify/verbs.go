package classify

import (
	"iter"
	"path"
	"strings"

	"github.com/retryx/retryx/classify/internal/ruleset"
)

// What a command does to the world when no file says so, told from the verbs in
// it: `twilio api:messages:create`, `./send-newsletter.js`, `manage.py migrate`.
//
//   - Only the program's own name and the first few words count, up to the
//     first that looks like data: a path (but for a script in the first place),
//     an address, an assignment, a number, a text with blanks.
//   - Of a compound word the first or the last part is the verb: create-user,
//     messages:create, sendEmail. What is joined by "and" or "then" is looked at
//     piece by piece: fetch-and-charge. In the name of a program or script every
//     part counts, as what it does besides looking may stand anywhere in it.
//   - A verb that does something anew each time makes a write wherever it
//     stands: to take a write for a read does harm, the reverse costs a retry.
//     Some do so only as an order to a program: provision.sh and restore.sh
//     are mostly written so that they may be repeated.
//   - Next come verbs that may be repeated, then verbs of which nobody can tell
//     (deploy), then verbs that look, then nouns that are verbs of doing as well
//     (`shop order`, but `shop order list`). A program that has such a noun for
//     its name and looks may do either: `./release preview`.
//   - A rehearsal or a question for help does nothing.

// wordsRead bounds how far into a command line verbs are looked for.
const wordsRead = 4

// verbEffect returns the effect that the verbs of a command line tell.
func verbEffect(argv []string) Effect {
	a := parseArguments(&ruleset.File{}, argv)
	if a.has("--dry-run") || a.has("--dryrun") || a.has("--help") {
		return EffectRead
	}
	name := verbOfProgram(argv[0])
	found := verbUnknown
	for n, i := range a.words {
		word := argv[i]
		switch {
		case n == 0 && script(word):
			name = min(name, verbOfProgram(word))
		case n >= wordsRead || data(word):
			return together(name, found).effect()
		default:
			found = min(found, verbOf(word))
		}
	}
	return together(name, found).effect()
}

// together returns what a program's name and the words behind it say.
func together(name, words verb) verb {
	if name == verbNoun && words == verbLook {
		return verbOpen
	}
	return min(name, words)
}

// verbOfProgram returns what the name of a program or script says.
func verbOfProgram(name string) verb {
	name = stem(baseName(name))
	found := verbOf(name)
	for part := range parts(name) {
		if v := exactVerb(part); v < verbLook {
			found = min(found, v)
		}
	}
	if found == verbOrder {
		return verbOpen
	}
	return found
}

// verb is what a word says about the effect, the one that counts most first.
type verb int

const (
	verbAnew    verb = iota // does something anew each time
	verbOrder               // likewise, but not in a program's name
	verbAgain               // may be repeated
	verbOpen                // does something, of which nobody can tell what
	verbLook                // changes nothing
	verbNoun                // a thing, unless nothing else is said
	verbUnknown             // says nothing
)

func (v verb) effect() Effect {
	switch v {
	case verbAnew, verbOrder, verbNoun:
		return EffectWrite
	case verbAgain:
		return EffectRepeatable
	case verbLook:
		return EffectRead
	case verbOpen, verbUnknown:
	}
	return EffectUnknown
}

// verbOf returns what a word says, which may be compound.
func verbOf(word string) verb {
	found := verbUnknown
	for compound := range strings.FieldsFuncSeq(word, func(r rune) bool { return r == ':' || r == '.' }) {
		first, last, joined := "", "", false
		for part := range parts(compound) {
			switch {
			case part == "and" || part == "then":
				found = min(found, verbOfEnds(first, last, joined))
				first, last, joined = "", "", true
			case first == "":
				first, last = part, part
			default:
				last = part
			}
		}
		found = min(found, verbOfEnds(first, last, joined))
	}
	return found
}

// verbOfEnds returns what the first and the last word of a compound one say. If
// it is joined to another, it begins with a verb and not with a noun.
func verbOfEnds(first, last string, joined bool) verb {
	v := simpleVerb(first)
	switch {
	case v == verbNoun && joined:
		return verbAnew
	case v == verbUnknown:
		return simpleVerb(last)
	}
	return v
}

// parts yields the words of a compound one in lower case: "send" and "mail" of
// send-mail, send_mail and sendMail.
func parts(compound string) iter.Seq[string] {
	return func(yield func(string) bool) {
		from := 0
		for i := 1; i <= len(compound); i++ {
			if i < len(compound) && !boundary(compound, i) {
				continue
			}
			part := strings.Trim(compound[from:i], "-_")
			if from = i; part != "" && !yield(strings.ToLower(part)) {
				return
			}
		}
	}
}

// boundary reports whether a word of a compound ends before i.
func boundary(s string, i int) bool {
	return s[i] == '-' || s[i] == '_' || upper(s[i]) && !upper(s[i-1])
}

func upper(c byte) bool { return 'A' <= c && c <= 'Z' }

func simpleVerb(word string) verb {
	if strings.HasPrefix(word, "send") || strings.HasPrefix(word, "create") {
		return verbAnew // sendreminders, createdb
	}
	return exactVerb(word)
}

func exactVerb(word string) verb {
	switch word {
	case "send":
		return verbAnew
	case "deploy":
		return verbOpen
	case "create", "publish", "insert", "append", "produce", "enqueue", "dispatch", "trigger", "submit", "pub", "broadcast",
		"emit", "announce", "notify", "mint", "pay", "buy", "purchase", "withdraw", "unpublish", "tweet", "sms", "reply":
		return verbAnew
	case "invoke", "provision", "launch", "spawn", "increment", "incr", "bump", "subscribe", "register", "signup", "restore",
		"failover", "rotate", "merge", "generate", "duplicate", "clone", "fork", "rerun", "replay", "requeue", "redeliver",
		"forward", "execute", "call", "seed", "ingest":
		return verbOrder
	case "delete", "remove", "rm", "del", "destroy", "drop", "purge", "uninstall", "update", "set", "unset", "put", "apply",
		"sync", "upload", "push", "upgrade", "install", "enable", "disable", "start", "stop", "restart", "scale", "tag", "untag",
		"configure", "clean", "cleanup", "prune", "lock", "unlock", "replace", "edit", "rename", "move", "mv", "migrate",
		"build", "compile", "archive", "assign", "attach", "detach", "mount", "unmount", "cancel", "close", "format":
		return verbAgain
	case "get", "list", "ls", "show", "describe", "status", "info", "view", "search", "find", "query", "check", "validate",
		"lint", "diff", "plan", "test", "version", "help", "logs", "log", "cat", "head", "tail", "watch", "wait", "ping",
		"whoami", "inspect", "count", "verify", "dump", "export", "history", "top", "stat", "stats", "read", "download",
		"pull", "fetch", "explain", "preview", "select", "lookup", "resolve", "login", "logout", "ps", "tree", "doctor":
		return verbLook
	case "order", "charge", "refund", "transfer", "payment", "payout", "mail", "email", "message", "comment", "post",
		"invite", "release", "import", "add", "new", "book", "donate", "fax", "page", "alert", "bill", "invoice":
		return verbNoun
	}
	return verbUnknown
}

// script reports whether a word names a program for an interpreter.
func script(word string) bool {
	switch path.Ext(word) {
	case ".sh", ".bash", ".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php", ".lua", ".ps1", ".jar", ".go", ".exs", ".R":
		return true
	}
	return strings.Contains(word, "/") && !strings.Contains(word, "://")
}

// stem cuts a script's extension off.
func stem(name string) string { return strings.TrimSuffix(name, path.Ext(name)) }

// data reports whether a word is what a command is about and not what it does.
func data(word string) bool {
	return word == "" || '0' <= word[0] && word[0] <= '9' || strings.ContainsAny(word, "/\\=@ \t\n\"'({[<>$*,;%")
}
