// Command batch classifies JSON lines from stdin; any arguments are ignored.
// It stands in for `retryx classify --batch` while only this package is built.
package main

import (
	"os"

	"github.com/retryx/retryx/classify"
)

func main() {
	if err := classify.Batch(os.Stdin, os.Stdout, nil); err != nil {
		_, _ = os.Stderr.WriteString("batch: " + err.Error() + "\n")
		panic(err)
	}
}
