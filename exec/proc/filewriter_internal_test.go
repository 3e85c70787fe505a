package proc

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestFileWriterCutsForReadersOnly(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, pipe, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer pipe.Close()

	line := append(bytes.Repeat([]byte("x"), 999), '\n')
	b := bytes.Repeat(line, 32)
	for _, c := range []struct {
		name string
		to   *os.File
		want int
	}{
		{"file", file, len(b)},
		{"pipe", pipe, pieceBytes / len(line) * len(line)},
	} {
		if got := len(newFileWriter(c.to).next(b)); got != c.want {
			t.Errorf("%s: next(%d bytes) = %d bytes, want %d", c.name, len(b), got, c.want)
		}
	}
}
