package cmd

// What continuous integration gets to see.
//
//   - On GitHub Actions every retry is a warning annotation and a final failure
//     an error annotation, a warning where another retryx is above, as that one
//     may still make good. --quiet leaves them out: they are lines on stderr.
//   - A run that retried or failed adds a row to the job's summary; runs share
//     one table.
//   - Other systems get the plain lines.
//   - No log group is opened or closed. Groups do not nest there: one of ours
//     would end the one that the job's script, or the command, has open.
//   - Annotations are recognised at the start of a line only, so an unfinished
//     line of the command is ended first. What a command printed cannot become
//     one by way of us: line breaks are escaped.

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// annotator writes workflow commands; the zero value writes none.
type annotator struct {
	on      bool
	w       io.Writer
	summary string // the file of the job's summary, "" without one
}

func newAnnotator(mode string, w io.Writer, vars map[string]string) annotator {
	if mode == "off" || mode == "auto" && vars["GITHUB_ACTIONS"] != "true" {
		return annotator{}
	}
	return annotator{on: true, w: w, summary: vars["GITHUB_STEP_SUMMARY"]}
}

// annotate writes one annotation; level is warning or error. The title begins as
// our lines do, by which a retryx above knows that it is no evidence.
func (a annotator) annotate(level, title, text string) {
	if !a.on {
		return
	}
	fmt.Fprintf(a.w, "::%s title=%s::%s\n", level, escapeProperty("retryx: "+title), escapeData(text))
}

const (
	summaryColumns = 5
	summaryCommand = 200 // bytes of a command in it
)

const summaryHead = "| command | outcome | reason | attempts | time |\n| --- | --- | --- | --- | --- |\n"

// summaryPatience bounds the wait for whoever has the summary locked.
const summaryPatience = time.Second

// sum adds a row for a command to the job's summary. Its failure is nobody's
// concern.
func (a annotator) sum(command string, cells ...string) {
	if !a.on || a.summary == "" {
		return
	}
	shown := []string{codeCell(fitted(command, summaryCommand))}
	for _, c := range cells {
		shown = append(shown, escapeCell(c))
	}
	row := "| " + strings.Join(shown, " | ") + " |\n"
	done := make(chan struct{})
	go func() { // a stuck one ends with the process
		defer close(done)
		appendRow(a.summary, row)
	}()
	timer := time.NewTimer(summaryPatience)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// appendRow adds a line to a table in a file, under a lock, so that parallel
// runs write one head.
func appendRow(name, row string) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_APPEND|os.O_CREATE|unix.O_NONBLOCK, 0o644) //nolint:gosec // the runner reads it as another user
	if err != nil {
		return
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return
	}
	_, _ = retried(func() (int, error) { return 0, unix.Flock(int(f.Fd()), unix.LOCK_EX) })
	if !endsWithTable(f) {
		row = "\n### retryx\n\n" + summaryHead + row
	}
	_, _ = f.WriteString(row)
}

// endsWithTable reports whether the last thing in the file is a row of ours.
func endsWithTable(f *os.File) bool {
	const look = 4096
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return false
	}
	tail := make([]byte, min(look, info.Size()))
	if _, err := f.ReadAt(tail, info.Size()-int64(len(tail))); err != nil {
		return false
	}
	body, whole := strings.CutSuffix(string(tail), " |\n")
	last := body[strings.LastIndexByte(body, '\n')+1:]
	return whole && strings.Count(last, " | ") == summaryColumns-1
}

func escapeData(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

func escapeProperty(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C").Replace(s)
}

// codeCell is a cell whose text no markup is looked for in.
func codeCell(s string) string {
	return "`" + strings.NewReplacer("|", "\\|", "\n", " ", "`", "'").Replace(s) + "`"
}

func escapeCell(s string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "`", "'", "<", "&lt;").Replace(s)
}
