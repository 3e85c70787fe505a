package proc_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/retryx/retryx/exec/proc"
)

func TestSpoolKeepsEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var spool proc.Spool
		defer spool.Reset()
		var want []byte
		for n := range rapid.IntRange(0, 5).Draw(t, "writes") {
			b := bytes.Repeat([]byte{byte('a' + n)}, rapid.IntRange(0, 600_000).Draw(t, "size"))
			want = append(want, b...)
			if n, err := spool.Write(b); n != len(b) || err != nil {
				t.Fatalf("Write(%d bytes) = %d, %v", len(b), n, err)
			}
		}
		var got bytes.Buffer
		if _, err := spool.WriteTo(&got); err != nil || !bytes.Equal(got.Bytes(), want) {
			t.Fatalf("WriteTo gave %d bytes, %v, want the %d written", got.Len(), err, len(want))
		}
		at := rapid.IntRange(0, len(want)+10).Draw(t, "at")
		part := make([]byte, rapid.IntRange(1, 2000).Draw(t, "part"))
		n, err := spool.ReadAt(part, int64(at))
		if wantN := min(len(part), max(0, len(want)-at)); n != wantN || n < len(part) && !errors.Is(err, io.EOF) {
			t.Fatalf("ReadAt(%d bytes, %d) of %d = %d, %v, want %d", len(part), at, len(want), n, err, wantN)
		}
		if spool.Size() != int64(len(want)) {
			t.Fatalf("Size() = %d, want %d", spool.Size(), len(want))
		}
	})
}

func TestSpoolLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	var spool proc.Spool
	if _, err := spool.Write(make([]byte, 3<<20)); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("files in the temporary directory = %v, %v, want none", left, err)
	}
	spool.Reset()
	if spool.Size() != 0 {
		t.Errorf("Size() after Reset = %d, want 0", spool.Size())
	}
}

func TestSpoolSink(t *testing.T) {
	var out, err proc.Spool
	spec := helper("out:to out", "err:to err", "exit:9")
	spec.Stdout.Spool, spec.Stderr.Spool = &out, &err
	got := run(t, spec)
	if got.Code != 9 || spooled(t, &out) != "to out" || spooled(t, &err) != "to err" {
		t.Errorf("code, stdout, stderr = %d, %q, %q", got.Code, spooled(t, &out), spooled(t, &err))
	}
	if string(got.Stdout) != "to out" || string(got.Stderr) != "to err" {
		t.Errorf("tails = %q, %q, want them kept too", got.Stdout, got.Stderr)
	}
	file := temporary(t, 0)
	if err := out.CopyTo(file, func() {}); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(file.Name()); string(text) != "to out" {
		t.Errorf("CopyTo wrote %q, want %q", text, "to out")
	}
}

func TestSpoolWithoutSpaceSparesTheChild(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()+"/gone")
	var spool proc.Spool
	spec := helper("hum:3000000", "exit:2")
	spec.Stderr.Spool = &spool
	got := run(t, spec)
	if got.Code != 2 || !errors.Is(got.WriteErr, os.ErrNotExist) || !errors.Is(spool.Err(), os.ErrNotExist) {
		t.Errorf("code, WriteErr, Err = %d, %v, %v, want 2, not exist, not exist", got.Code, got.WriteErr, spool.Err())
	}
}

func TestSpoolToClosedPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r.Close()
	var spool proc.Spool
	writeTo(t, &spool, strings.Repeat("x", 100_000))
	if err := spool.CopyTo(w, func() {}); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("CopyTo(closed pipe) = %v, want EPIPE", err)
	}
}

func writeTo(t *testing.T, w io.Writer, s string) {
	t.Helper()
	if _, err := io.WriteString(w, s); err != nil {
		t.Fatal(err)
	}
}

func TestSpoolIsSealedAtDone(t *testing.T) {
	in, command := piped(t, "")
	var spool proc.Spool
	spec := helper(`spawn:readline:|err:late\n|out:wrote\n|readline:|err:more\n`, `err:mine\n`)
	spec.Stdin = in
	spec.Stderr.Spool = &spool
	spec.WaitDelay = 10 * time.Millisecond
	p, out := startRead(t, spec)
	if got := finish(t, p); !got.LeftOpen {
		t.Fatal("LeftOpen = false, want true")
	}
	writeString(t, command, "\n")
	out.want("wrote")
	p.Close()
	writeString(t, command, "\n")
	out.ended() // it died of SIGPIPE, so all that it wrote before was taken
	if got := spooled(t, &spool); got != "mine\n" {
		t.Errorf("spool = %q, want %q: what comes after Done belongs to no attempt", got, "mine\n")
	}
}
