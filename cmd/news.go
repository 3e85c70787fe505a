package cmd

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// newsKept is how long a cancel file of a run is left for those who look at it
// late; stale ones are swept when the next one is made.
const newsKept = 24 * time.Hour

const reasonShown = 200

// news is how a cancel travels between invocations: each has a file of its own
// that it makes when it is cancelled or its caller is gone, and looks at those
// of every invocation above it, so that the news passes any depth, setsid
// included.
type news struct {
	own     string   // "" when there is no place for one
	watched []string // cancel files: given ones and those from above
}

// token returns how the engine asks for the cancel token, nil when nothing has
// to be looked at.
func (n news) token() func() (string, bool) {
	if len(n.watched) == 0 {
		return nil
	}
	return func() (string, bool) {
		for _, path := range n.watched {
			if _, err := os.Lstat(path); err == nil {
				return readReason(path), true
			}
		}
		return "", false
	}
}

// readReason is the first line of a cancel file, or what there is to say
// without one.
func readReason(path string) string {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may be a FIFO
	if err == nil {
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			data, _ := io.ReadAll(io.LimitReader(f, reasonShown)) // a reason is a courtesy
			if line, _, _ := strings.Cut(strings.TrimSpace(string(data)), "\n"); line != "" {
				return line
			}
		}
	}
	return "cancel file " + path
}

// announce makes our own cancel file. Nobody waits for it: its failure only
// means that the layers below hear of the cancel by signal alone.
func (n news) announce(reason string) {
	if n.own == "" {
		return
	}
	dir := filepath.Dir(n.own)
	if privateDir(dir) != nil {
		return
	}
	sweep(dir)
	// Whoever sees the file stops at once and reads it no second time, so it
	// appears with its text in it.
	draft := n.own + ".draft"
	f, err := os.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return
	}
	_, _ = f.WriteString(reason + "\n") // the file is the news, its text a courtesy
	_ = f.Close()
	_ = os.Rename(draft, n.own)
}

// sweep removes what earlier runs left in one of our private directories.
func sweep(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > newsKept {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}
