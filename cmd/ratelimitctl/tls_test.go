package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
)

// The tool connects by TLS, with a certificate of its own if the server asks for one.
func TestTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca, caKey := certificate(t, dir, "ca", nil, nil)
	certificate(t, dir, "server", ca, caKey)
	certificate(t, dir, "client", ca, caKey)
	file := func(name string) string { return filepath.Join(dir, name) }
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	_ = listener.Close()
	_, port, _ := net.SplitHostPort(addr)
	server := redistest.Start(t, "--tls-port", port, "--tls-ca-cert-file", file("ca.pem"), "--tls-cert-file", file("server.pem"), "--tls-key-file", file("server.key"))
	newFleet(t, server.Addr).known(map[string]string{"login": ruleText(login)})
	with := func(flags ...string) (string, int) {
		return ctlWith(t, env("rediss://"+addr), "", slices.Concat(flags, []string{"rules"})...)
	}
	all := []string{"-tls-ca", file("ca.pem"), "-tls-cert", file("client.pem"), "-tls-key", file("client.key")}
	if text, status := with(all...); status != done || !strings.Contains(text, "login") {
		t.Errorf("status %d, %s", status, text)
	}
	for _, few := range [][]string{nil, all[:2], all[2:]} {
		if text, status := with(few...); status != failed || strings.Count(text, "\n") != 1 {
			t.Errorf("%q: status %d, %s", few, status, text)
		}
	}
}

// certificate writes a certificate and its key to files. Without a signer it signs itself, and may sign others.
func certificate(t *testing.T, dir, name string, signer *x509.Certificate, by *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true, IsCA: signer == nil,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	if signer == nil {
		signer, by = c, own
	}
	der, err := x509.CreateCertificate(rand.Reader, c, signer, &own.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		t.Fatal(err)
	}
	for ending, block := range map[string]*pem.Block{".pem": {Type: "CERTIFICATE", Bytes: der}, ".key": {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(filepath.Join(dir, name+ending), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err = x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c, own
}
