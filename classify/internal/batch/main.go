// Command batch classifies JSON lines from stdin, without redaction; arguments
// are ignored. It serves authors of rules while they score a corpus.
package main

import (
	"log"
	"os"

	"github.com/retryx/retryx/classify"
)

func main() {
	log.SetFlags(0)
	if err := classify.Batch(os.Stdin, os.Stdout, classify.Options{}, nil); err != nil {
		log.Fatal(err)
	}
}
