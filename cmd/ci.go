package cmd

// What continuous integration gets to see. On GitHub Actions every retry is a
// warning annotation, a final failure an error annotation, and a run that
// retried or failed adds a row to the job's summary. Other systems get the
// plain lines. No log group is opened or closed: those are the command's.

import (
	"fmt"
	"os"
	"strings"
)

// annotator writes workflow commands; the zero value writes none.
type annotator struct {
	on      bool
	w       *os.File
	summary string // the file of the job's summary, "" without one
}

func newAnnotator(mode string, w *os.File, vars map[string]string) annotator {
	if mode == "off" || mode == "auto" && vars["GITHUB_ACTIONS"] != "true" {
		return annotator{}
	}
	return annotator{on: true, w: w, summary: vars["GITHUB_STEP_SUMMARY"]}
}

// annotate writes one annotation; level is warning or error.
func (a annotator) annotate(level, title, text string) {
	if !a.on {
		return
	}
	fmt.Fprintf(a.w, "::%s title=%s::%s\n", level, escapeProperty(title), escapeData(text))
}

const summaryHead = "| command | outcome | reason | attempts | time |\n| --- | --- | --- | --- | --- |\n"

// sum adds a row to the job's summary. Its failure is nobody's concern.
func (a annotator) sum(row ...string) {
	if !a.on || a.summary == "" {
		return
	}
	f, err := os.OpenFile(a.summary, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o644) //nolint:gosec // the runner reads it as another user
	if err != nil {
		return
	}
	defer f.Close()
	text := ""
	if !endsWithTable(f) {
		text = "\n### retryx\n\n" + summaryHead
	}
	for i, cell := range row {
		row[i] = escapeCell(cell)
	}
	_, _ = f.WriteString(text + "| " + strings.Join(row, " | ") + " |\n")
}

// endsWithTable reports whether the last thing in the summary is a row of ours,
// so that parallel and later runs share one table.
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
	lines := strings.Split(strings.TrimRight(string(tail), "\n"), "\n")
	last := lines[len(lines)-1]
	return strings.HasSuffix(string(tail), "|\n") && strings.Count(last, " | ") == strings.Count(summaryHead[:strings.IndexByte(summaryHead, '\n')], " | ")
}

func escapeData(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

func escapeProperty(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C").Replace(s)
}

func escapeCell(s string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "`", "'", "<", "&lt;").Replace(s)
}
