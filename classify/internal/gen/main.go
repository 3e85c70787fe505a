// Command gen turns classify/rules/*.yaml into Go tables, so that nothing is
// parsed when retryx runs. Run it with `go generate ./classify`.
package main

import (
	"log"
	"os"

	"github.com/retryx/retryx/classify/internal/gosource"
	"github.com/retryx/retryx/classify/internal/ruleset"
)

func main() {
	log.SetFlags(0)
	files, err := ruleset.ReadDir(os.DirFS("rules"))
	if err != nil {
		log.Fatal(err)
	}
	source, err := gosource.Print(files)
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile("rules_gen.go", source, 0o600); err != nil {
		log.Fatal(err)
	}
}
