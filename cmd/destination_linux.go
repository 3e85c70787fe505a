package cmd

import "golang.org/x/sys/unix"

// writeNow writes what can be written without waiting, and returns how much
// that was. An error is for the write after it to meet again: not every kind of
// file can promise not to wait.
func writeNow(fd int, text []byte) int {
	n, err := unix.Pwritev2(fd, [][]byte{text}, -1, unix.RWF_NOWAIT)
	if err != nil {
		return 0
	}
	return n
}
