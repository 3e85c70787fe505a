package proc_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/retryx/retryx/exec/proc"
)

// What an attempt costs over a bare child, with and without capture.

func BenchmarkBareExec(b *testing.B) {
	for b.Loop() {
		if err := exec.CommandContext(b.Context(), "/bin/true").Run(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAttempt(b *testing.B) {
	for _, bench := range []struct {
		name string
		spec proc.Spec
	}{
		{"inherit", proc.Spec{Group: proc.Shared}},
		{"tee", proc.Spec{Group: proc.New, Stderr: proc.Sink{File: os.Stderr, Tee: true}}},
		{"pty", proc.Spec{Stderr: proc.Sink{File: os.Stderr, Tee: true, PTY: true}}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			bench.spec.Argv = []string{"/bin/true"}
			for b.Loop() {
				p, err := proc.Start(bench.spec)
				if err != nil {
					b.Fatal(err)
				}
				<-p.Done()
				p.Close()
			}
		})
	}
}

func BenchmarkTee(b *testing.B) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer null.Close()
	const size = 64 << 20
	b.SetBytes(size)
	for b.Loop() {
		spec := helper("hum:67108864")
		spec.Stderr = proc.Sink{File: null, Tee: true}
		p, err := proc.Start(spec)
		if err != nil {
			b.Fatal(err)
		}
		<-p.Done()
		p.Close()
	}
}
