package redisstore

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
)

// Credentials are how to log in to a server, and what to trust it by. A user or
// a password in the address goes before those here; Password before
// PasswordFile. The files are read before the first operation that dials.
type Credentials struct {
	Username     string
	Password     string
	PasswordFile string // its first line

	CAFile     string // PEM; empty: what the system trusts
	CertFile   string // PEM; the client's own certificate, with KeyFile
	KeyFile    string // PEM
	SkipVerify bool   // believe any server
}

// address is where a server is. Its text has no secrets.
type address struct {
	network, host string // what to dial
	name          string // the host to verify over TLS
	tls           bool
	db            int
	username      string
	password      string
	text          string
}

const (
	defaultPort = "6379"
	databases   = 1 << 16 // more than any server has; keeps nonsense out
)

func parse(where string) (address, error) {
	u, err := url.Parse(where)
	if err != nil {
		return address{}, errors.New("read address of budget store: want redis://host:port, rediss://host:port or unix:///path") // err repeats the address
	}
	a := address{}
	switch {
	case u.Scheme == "unix" && u.Path != "" && u.Host == "":
		a.network, a.host = "unix", u.Path
		a.text = "unix://" + u.Path
	case u.Scheme == "redis" && u.Hostname() != "", u.Scheme == "rediss" && u.Hostname() != "":
		port := u.Port()
		if port == "" {
			port = defaultPort
		}
		a.network, a.host, a.name = "tcp", net.JoinHostPort(u.Hostname(), port), u.Hostname()
		a.tls = u.Scheme == "rediss"
		a.text = u.Scheme + "://" + a.host
	default:
		return address{}, errors.New("read address of budget store: want redis://host:port, rediss://host:port or unix:///path")
	}
	if a.db, err = database(u); err != nil {
		return address{}, fmt.Errorf("read address of budget store: %s: %w", a.text, err)
	}
	if u.User != nil {
		a.username = u.User.Username()
		a.password, _ = u.User.Password()
	}
	return a, nil
}

// database reads the number behind the host, or db=.
func database(u *url.URL) (int, error) {
	query := u.Query()
	text := query.Get("db")
	query.Del("db")
	if len(query) > 0 || u.Fragment != "" {
		return 0, errors.New("want nothing but db= behind a ?")
	}
	if path := strings.Trim(u.Path, "/"); u.Scheme != "unix" && path != "" {
		text = path
	}
	if text == "" {
		return 0, nil
	}
	db, err := strconv.Atoi(text)
	if err != nil || db < 0 || db >= databases {
		return 0, errors.New("the database is not a number")
	}
	return db, nil
}

// login returns the user's name and password, both of which may be empty.
func (a address) login(c Credentials) (username, password string, err error) {
	username, password = a.username, a.password
	if username == "" {
		username = c.Username
	}
	switch {
	case password != "":
	case c.Password != "":
		password = c.Password
	case c.PasswordFile != "":
		data, err := os.ReadFile(c.PasswordFile)
		if err != nil {
			return "", "", fmt.Errorf("read password: %w", err)
		}
		password, _, _ = strings.Cut(string(data), "\n")
		password = strings.TrimSuffix(password, "\r")
		if password == "" {
			return "", "", fmt.Errorf("read password: %s has no first line", c.PasswordFile)
		}
	}
	return username, password, nil
}
