package classify

import (
	"bytes"
	"fmt"
	"testing"
)

// bigOutput is 64 KiB of log lines full of the words that rules look for, with
// nothing in it that a tool's own rule recognises.
func bigOutput() []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < maxText; i++ {
		fmt.Fprintf(&b, "2026-01-02T03:04:%02d worker %d: copied object %x of 900, status ok, no error, connection kept\n", i%60, i%7, i*2654435761)
	}
	return b.Bytes()[:maxText]
}

// BenchmarkClassify64KiB is the promise that judging a failure costs less than
// 10 ms, patterns compiled from nothing each time.
func BenchmarkClassify64KiB(b *testing.B) {
	out := bigOutput()
	for _, argv := range [][]string{{"./deploy.sh"}, {"git", "push"}, {"kubectl", "apply", "-f", "x"}} {
		b.Run(argv[0], func(b *testing.B) {
			for b.Loop() {
				New(Read(argv), Options{}).Classify(Attempt{Argv: argv, Exit: 1, Stderr: out})
			}
		})
	}
}

func BenchmarkClassifyOneLine(b *testing.B) {
	argv := []string{"curl", "-fsS", "http://127.0.0.1:9/"}
	out := []byte("curl: (7) Failed to connect to 127.0.0.1 port 9: Connection refused\n")
	for b.Loop() {
		New(Read(argv), Options{}).Classify(Attempt{Argv: argv, Exit: 7, Stderr: out})
	}
}

func BenchmarkRead(b *testing.B) {
	argv := []string{"sudo", "-u", "app", "timeout", "30", "curl", "-fsSL", "-X", "POST", "-d", "@x", "http://h/"}
	for b.Loop() {
		Read(argv)
	}
}

func BenchmarkSuccessRuleMatch(b *testing.B) {
	argv := []string{"curl", "-fsS", "http://127.0.0.1:9/"}
	c := New(Read(argv), Options{})
	a := Attempt{Argv: argv, Stdout: bigOutput()}
	for b.Loop() {
		c.SuccessRuleMatch(a)
	}
}
