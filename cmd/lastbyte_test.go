package cmd

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestEndsMidLine(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux opens a file that is open for writing once more")
	}
	path := filepath.Join(t.TempDir(), "log")
	for _, tt := range []struct {
		name, before, text string
		flags              int
		seek               int64
		want               bool
	}{
		{name: "nothing"},
		{name: "a line", text: "foo\n"},
		{name: "half a line", text: "foo", want: true},
		{name: "appended to half a line", before: "foo", flags: os.O_APPEND, want: true},
		{name: "appended to a line", before: "foo\n", flags: os.O_APPEND},
		{name: "appended half a line", before: "foo\n", text: "bar", flags: os.O_APPEND, want: true},
		{name: "in front of an older line", before: "foo\nbar\n", text: "fo", want: true},
		{name: "in front of half an older one", before: "foo\nbar", text: "foo\n"},
		{name: "at the start of an older one", before: "foo"},
		{name: "past the end", before: "foo\n", seek: 9},
	} {
		if err := os.WriteFile(path, []byte(tt.before), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_WRONLY|tt.flags, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = f.WriteString(tt.text); err == nil && tt.seek > 0 {
			_, err = f.Seek(tt.seek, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		midLine, known := endsMidLine(f)
		if midLine != tt.want || known != (tt.seek == 0) {
			t.Errorf("endsMidLine(%s) = %v, %v, want %v, %v", tt.name, midLine, known, tt.want, tt.seek == 0)
		}
		_ = f.Close()
	}
}

func TestEndsMidLineOfNoFile(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	if midLine, known := endsMidLine(w); midLine || known {
		t.Errorf("endsMidLine(pipe) = %v, %v, want it unknown", midLine, known)
	}
}
