// Command retryx runs a command again when that can help, and only then.
package main

import (
	"os"

	"github.com/retryx/retryx/cmd"
)

func main() {
	os.Exit(cmd.Main(cmd.System()))
}
