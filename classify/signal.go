package classify

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Rules name signals, because numbers differ between systems.

// signalName returns "SIGSEGV" for its number, "" for an unknown one.
func signalName(n int) string {
	if n <= 0 {
		return ""
	}
	return unix.SignalName(syscall.Signal(n))
}

// signalNumber reads a name with or without SIG, or a number; 0 for nonsense.
func signalNumber(word string) int {
	if n, err := strconv.Atoi(word); err == nil {
		if n > 0 && n < 128 {
			return n
		}
		return 0
	}
	return int(unix.SignalNum("SIG" + strings.TrimPrefix(strings.ToUpper(word), "SIG")))
}

func signalNames(list string) ([]string, error) {
	var names []string
	for word := range strings.SplitSeq(list, ",") {
		n := signalNumber(strings.TrimSpace(word))
		name := signalName(n)
		if name == "" {
			return nil, fmt.Errorf("%q is no signal", word)
		}
		names = append(names, name)
	}
	return names, nil
}
