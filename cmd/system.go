package cmd

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
)

// Env is what surrounds one invocation of retryx.
type Env struct {
	Args                  []string // without the program's name
	Stdin, Stdout, Stderr *os.File
	Environ               []string
	Parent                int // the process that started us
}

// System returns the surroundings of this process.
func System() Env {
	return Env{
		Args:  os.Args[1:],
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Environ: os.Environ(), Parent: os.Getppid(),
	}
}

// variables returns the environment by name; the last of a repeated one counts.
func (e Env) variables() map[string]string {
	vars := make(map[string]string, len(e.Environ))
	for _, kv := range e.Environ {
		name, value, _ := strings.Cut(kv, "=")
		vars[name] = value
	}
	return vars
}

// Main runs retryx and returns its exit status. A run of a command locks the
// calling goroutine to its thread and goes on listening to signals, so the
// program is to end after it. Where a shell has to see a signal it does not
// return but dies by it.
func Main(env Env) int { return execute(env) }

// version is set by release builds; others say what the build information knows.
var version string

// Version returns the version of this build.
func Version() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "0.0.0-dev"
	}
	return strings.TrimPrefix(info.Main.Version, "v")
}

// say writes one line of our own.
func say(w io.Writer, format string, args ...any) {
	fmt.Fprintf(w, "retryx: "+format+"\n", args...)
}
