package cmd

import (
	"bytes"
	"testing"
	"time"

	"github.com/creack/pty"
)

func TestCountdown(t *testing.T) {
	for left, want := range map[time.Duration]string{
		0: "", -time.Millisecond: "", // the ticker was faster than the end of the wait
		400 * time.Millisecond: "1s", time.Second: "1s", 1400 * time.Millisecond: "2s", 61 * time.Second: "1m1s",
	} {
		var out bytes.Buffer
		l := &lines{w: &out, screen: true}
		l.Counting(left)
		l.WaitOver()
		if want != "" {
			want = "\r\x1b[Kretryx: next attempt in " + want + "\r\x1b[K"
		}
		if got := out.String(); got != want {
			t.Errorf("Counting(%s) = %q, want %q", left, got, want)
		}
	}
}

// TestIsScreen: a dumb terminal, as of an editor, shows the codes of a countdown
// as they are.
func TestIsScreen(t *testing.T) {
	outer, terminal, err := pty.Open()
	if err != nil {
		t.Skip(err)
	}
	defer outer.Close()
	defer terminal.Close()
	for name, want := range map[string]bool{"xterm": true, "": true, "dumb": false} {
		if got := isScreen(terminal, map[string]string{"TERM": name}); got != want {
			t.Errorf("isScreen(terminal, TERM=%s) = %v, want %v", name, got, want)
		}
	}
}
