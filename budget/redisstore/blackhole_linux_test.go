package redisstore_test

import (
	"net"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// blackhole is an address that drops what is sent to it: a loopback port whose
// queue is full.
func blackhole(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	host := net.JoinHostPort("127.0.0.1", strconv.Itoa(name.(*syscall.SockaddrInet4).Port))
	for range 8 {
		c, err := net.DialTimeout("tcp", host, 50*time.Millisecond)
		if err != nil {
			return "redis://" + host
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	t.Skip("this system takes connections into a full queue")
	return ""
}
