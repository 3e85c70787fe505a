package redisstore_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/retryx/retryx/budget"
	"github.com/retryx/retryx/budget/redisstore"
)

// Rights are what a user needs, as docs/fleet.md says.
const rights = "+eval +evalsha +time +hmget +hgetall +hset +pexpire +persist +pttl +scan +select +hello +auth"

func TestLogin(t *testing.T) {
	s := startServer(t)
	acl := []any{"ACL", "SETUSER", "fleet", "on", ">of-the-fleet", "~retryx:v1:*", "nocommands"}
	for right := range strings.FieldsSeq(rights) {
		acl = append(acl, right)
	}
	s.do(t, acl...)
	s.do(t, "ACL", "SETUSER", "default", ">of-default")
	t.Cleanup(func() { s.admin.Do(t.Context(), "ACL", "SETUSER", "default", "nopass") })
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("of-the-fleet\r\nmore\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		address string
		login   redisstore.Credentials
	}{
		"address":         {"unix://fleet:of-the-fleet@" + s.socket + "?db=3", redisstore.Credentials{}},
		"variables":       {s.url(), redisstore.Credentials{Username: "fleet", Password: "of-the-fleet"}},
		"file":            {s.url(), redisstore.Credentials{Username: "fleet", PasswordFile: file}},
		"address first":   {"unix://fleet:of-the-fleet@" + s.socket, redisstore.Credentials{Username: "x", Password: "y", PasswordFile: "z"}},
		"without a name":  {s.url(), redisstore.Credentials{Password: "of-default"}},
		"mixed":           {"unix://fleet@" + s.socket, redisstore.Credentials{Password: "of-the-fleet"}},
		"password escape": {"unix://fleet:of%2Dthe%2Dfleet@" + s.socket, redisstore.Credentials{}},
	} {
		t.Run(name, func(t *testing.T) {
			store, a := open(t, c.address, c.login), standard("a")
			withdraw(t, store, a, 0)
			for _, err := range []error{
				store.Reset(t.Context(), a),
				second(store.List(t.Context(), budget.Named)),
				second(store.Configure(t.Context(), budget.Account{Space: budget.Runs, Name: "r"}, budget.Change{})),
				second(store.Configure(t.Context(), budget.Account{Space: budget.Runs, Name: "r"}, budget.Change{})),
				second(store.Settle(t.Context(), a, budget.Settling{Bonus: true}, 0)),
			} {
				if err != nil {
					t.Errorf("an operation = %v, want nil", err)
				}
			}
		})
	}
	if n := s.do(t, "SELECT", 3); n != "OK" {
		t.Fatal(n)
	}
}

func second[T any](_ T, err error) error { return err }

// Addresses that cannot be one are refused, and their secrets are not repeated.
func TestOpenRefuses(t *testing.T) {
	for _, address := range []string{
		"", "http://h", "redis://", "rediss:///0", "unix://", "unix://host/path", "redis://h/zero", "redis://h/-1",
		"redis://h:1/99999999", "redis://h?x=1", "redis://h#f", "redis://u:hunter2%zz@h", "redis://u:hunter2@h:port",
		"redis://u:hunter2@h/x", "redis://u:hunter2@", "redis://u:hunter2 @h",
	} {
		if _, err := redisstore.Open(address, redisstore.Credentials{}); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("Open(%q) = %v, want an error without secrets", address, err)
		}
	}
	for _, address := range []string{"redis://h", "redis://[::1]:7/3", "rediss://u:p@h:1", "unix:///a/b?db=2", "redis://h/"} {
		if _, err := redisstore.Open(address, redisstore.Credentials{}); err != nil {
			t.Errorf("Open(%q) = %v, want nil", address, err)
		}
	}
}

func TestTLS(t *testing.T) {
	dir := t.TempDir()
	own := certificate(t, filepath.Join(dir, "server"))
	certificate(t, filepath.Join(dir, "stranger"))
	certificate(t, filepath.Join(dir, "client"))
	pool := x509.NewCertPool()
	data, err := os.ReadFile(filepath.Join(dir, "client.crt"))
	if err != nil || !pool.AppendCertsFromPEM(data) {
		t.Fatal(err)
	}
	p := startProxy(t, startServer(t).socket, &tls.Config{
		Certificates: []tls.Certificate{own}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, MinVersion: tls.VersionTLS12,
	})
	in := func(name string) string { return filepath.Join(dir, name) }
	for name, c := range map[string]struct {
		login redisstore.Credentials
		good  bool
	}{
		"trusted":        {redisstore.Credentials{CAFile: in("server.crt"), CertFile: in("client.crt"), KeyFile: in("client.key")}, true},
		"not verified":   {redisstore.Credentials{SkipVerify: true, CertFile: in("client.crt"), KeyFile: in("client.key")}, true},
		"stranger":       {redisstore.Credentials{CAFile: in("stranger.crt"), CertFile: in("client.crt"), KeyFile: in("client.key")}, false},
		"unknown":        {redisstore.Credentials{CertFile: in("client.crt"), KeyFile: in("client.key")}, false},
		"no certificate": {redisstore.Credentials{CAFile: in("server.crt")}, false},
		"no CA file":     {redisstore.Credentials{CAFile: in("nothing")}, false},
		"key for CA":     {redisstore.Credentials{CAFile: in("server.key")}, false},
		"no key":         {redisstore.Credentials{CAFile: in("server.crt"), CertFile: in("client.crt")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			store := open(t, "rediss://"+p.host(), c.login)
			_, err := store.Withdraw(t.Context(), standard("a"), 0)
			t.Logf("Withdraw() = %v", err)
			if (err == nil) != c.good {
				t.Errorf("Withdraw() = %v, want it to work: %v", err, c.good)
			}
		})
	}
}

// certificate writes a certificate for 127.0.0.1 that is its own authority, and
// its key.
func certificate(t *testing.T, base string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	crt := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	secret := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	for name, data := range map[string][]byte{".crt": crt, ".key": secret} {
		if err := os.WriteFile(base+name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pair, err := tls.X509KeyPair(crt, secret)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}
