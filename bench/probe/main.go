// Probe asks a service once: probe URL. It exits 0 after an answer of 200, and 1
// after any other answer or none within PROBE_TIMEOUT (1s), and says so on stderr.
// It is what the storm's calls run: as small as a client can be, so that two cores
// carry hundreds of them.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: probe URL")
		os.Exit(2)
	}
	if err := ask(os.Args[1], timeout()); err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
}

func timeout() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("PROBE_TIMEOUT")); err == nil {
		return d
	}
	return time.Second
}

// ask returns nil if the service answered 200 in time.
func ask(target string, limit time.Duration) error {
	u, err := url.Parse(target)
	if err != nil {
		return err
	}
	conn, err := net.DialTimeout("tcp", u.Host, limit)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.0\r\nHost: %s\r\n\r\n", u.Path, u.Host); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("no answer within %v: timed out", limit)
	}
	if err != nil {
		return err
	}
	_, status, _ := strings.Cut(strings.TrimSpace(line), " ")
	if !strings.HasPrefix(status, "200") {
		return errors.New(status)
	}
	return nil
}
