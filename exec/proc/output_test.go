package proc_test

import (
	"os"
	"testing"

	"github.com/retryx/retryx/exec/proc"
)

func TestOutputCutBack(t *testing.T) {
	for _, test := range []struct {
		name    string
		stdout  func(t *testing.T) (stdout, stderr *os.File)
		cut     bool
		partial bool
		after   string // what the second attempt leaves
	}{
		{"empty file", func(t *testing.T) (*os.File, *os.File) {
			t.Helper()
			return temporary(t, 0), nil
		}, true, false, "x,"},
		{"file with content", func(t *testing.T) (*os.File, *os.File) {
			t.Helper()
			file := temporary(t, 0)
			writeString(t, file, "old\n")
			return file, nil
		}, false, true, "old\nx,x,"},
		{"content behind the offset", func(t *testing.T) (*os.File, *os.File) {
			t.Helper()
			file := temporary(t, 0)
			writeString(t, file, "a long old line\n")
			if _, err := file.Seek(0, 0); err != nil {
				t.Fatal(err)
			}
			return file, nil
		}, false, true, "x,x,ng old line\n"},
		{"opened for append", func(t *testing.T) (*os.File, *os.File) {
			t.Helper()
			return temporary(t, os.O_APPEND), nil
		}, false, true, "x,x,"},
		{"stderr too", func(t *testing.T) (*os.File, *os.File) {
			t.Helper()
			file := temporary(t, 0)
			return file, file
		}, false, true, "x,x,"},
		{"stderr elsewhere", func(t *testing.T) (*os.File, *os.File) {
			t.Helper()
			return temporary(t, 0), temporary(t, 0)
		}, true, false, "x,"},
	} {
		t.Run(test.name, func(t *testing.T) {
			stdout, stderr := test.stdout(t)
			out := proc.NewOutput(stdout, stderr)
			spec := helper(`out:x,`)
			spec.Stdout.File = stdout
			for range 2 {
				if err := out.CutBack(); err != nil {
					t.Fatal(err)
				}
				out.Before()
				run(t, spec)
			}
			if out.CanCutBack() != test.cut || out.Partial() != test.partial {
				t.Errorf("CanCutBack, Partial = %v, %v, want %v, %v", out.CanCutBack(), out.Partial(), test.cut, test.partial)
			}
			got, err := os.ReadFile(stdout.Name())
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != test.after {
				t.Errorf("file = %q, want %q", got, test.after)
			}
		})
	}
}

func TestSilentAttemptIsNotPartial(t *testing.T) {
	file := temporary(t, os.O_APPEND)
	out := proc.NewOutput(file, nil)
	spec := helper("exit:1")
	spec.Stdout.File = file
	out.Before()
	run(t, spec)
	if out.Partial() {
		t.Error("Partial() = true, want false: nothing was written")
	}
}

func TestPipeIsNeitherCutNorPartial(t *testing.T) {
	w, lines := pipe(t)
	out := proc.NewOutput(w, nil)
	spec := helper(`out:try\n`)
	spec.Stdout.File = w
	out.Before()
	run(t, spec)
	lines.want("try")
	if out.CanCutBack() || out.Partial() {
		t.Errorf("CanCutBack, Partial = %v, %v, want false, false", out.CanCutBack(), out.Partial())
	}
}

func writeString(t *testing.T, file *os.File, s string) {
	t.Helper()
	if _, err := file.WriteString(s); err != nil {
		t.Fatal(err)
	}
}
