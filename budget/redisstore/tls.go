package redisstore

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// trust returns how to speak TLS with the server, nil when it is not spoken.
func (a address) trust(c Credentials) (*tls.Config, error) {
	if !a.tls {
		if a.network == "tcp" && (c.CAFile != "" || c.CertFile != "" || c.KeyFile != "" || c.SkipVerify) {
			return nil, errors.New("there are TLS options and the address is not rediss://")
		}
		return nil, nil
	}
	conf := &tls.Config{ServerName: a.name, MinVersion: tls.VersionTLS12}
	// Asked for by a variable whose name says so.
	conf.InsecureSkipVerify = c.SkipVerify
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read CA: %w", err)
		}
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read CA: %s has no certificate", c.CAFile)
		}
	}
	if c.CertFile != "" || c.KeyFile != "" {
		own, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("read client certificate: %w", err)
		}
		conf.Certificates = []tls.Certificate{own}
	}
	return conf, nil
}
