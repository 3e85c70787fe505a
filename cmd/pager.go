package cmd

// Which commands take the terminal for themselves, or bring up a pager that
// does. Such programs read their keys from the terminal that their stderr is, by
// its name or by the descriptor. A terminal of ours has no keys: they would wait
// for ever.
//
//   - What takes the screen itself gets our own stderr; nothing is read of it.
//   - What may bring up a pager gets a pipe, which sends less to the real one.
//   - What a shell starts is not known; for it there is --pty never.

import "strings"

// screenUse is what a command does with the screen when its stdout is one.
type screenUse int

const (
	screenLines screenUse = iota // it writes
	screenPaged                  // it may bring up a pager
	screenOwned                  // it takes all of it
)

// screenOf tells from the tool and its subcommand.
func screenOf(tool, subcommand string) screenUse {
	switch tool {
	case "less", "more", "most", "lv", "pg", "zless", "zmore", "man", "info", "bat", "batcat",
		"vi", "vim", "view", "nvim", "nano", "pico", "emacs", "top", "htop", "tig", "ranger", "lynx", "w3m", "mutt":
		return screenOwned
	case "aws", "gh", "glab", "systemctl", "journalctl", "loginctl", "timedatectl",
		"psql", "mysql", "mariadb", "sqlite3", "delta", "hg", "svn", "bzr", "jj":
		return screenPaged
	case "git":
		if first, _, _ := strings.Cut(subcommand, " "); !transfers(first) {
			return screenPaged
		}
	}
	return screenLines
}

// transfers reports whether a command of git's shows how far it is, and pages
// nothing.
func transfers(subcommand string) bool {
	switch subcommand {
	case "clone", "fetch", "pull", "push", "submodule", "lfs", "ls-remote", "gc", "repack", "fsck",
		"checkout", "switch", "merge", "rebase", "am", "annex", "svn", "p4", "maintenance":
		return true
	}
	return false
}
