package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/weir-project/weir/certs"
)

// tlsFlags are the flags of the ports for clients and probes. They have Redis' names if Redis has such flags.
type tlsFlags struct {
	TLSListen      string `name:"tls-listen" address:"listen" placeholder:"HOST:PORT" help:"Address for clients that speak TLS, 1.2 or later, besides --listen or instead of it."`
	TLSCertFile    string `name:"tls-cert-file" placeholder:"FILE" help:"Certificate of this server in PEM, with its intermediates. weir reads a replaced file within a second of the next connection, and at SIGHUP."`
	TLSKeyFile     string `name:"tls-key-file" placeholder:"FILE" help:"Private key of the certificate."`
	TLSCAFile      string `name:"tls-ca-file" placeholder:"FILE" help:"Certificates of the authorities that sign certificates of clients."`
	TLSAuthClients string `name:"tls-auth-clients" default:"no" enum:"no,optional,required" help:"Whether clients must present a certificate: no, optional (a presented one must be valid) or required. A certificate lets a client connect, and logs in the user whose rule san: has one of its names; else AUTH decides what the client may do."`
	RLSTLS         bool   `name:"rls-tls" help:"Speak TLS on --rls, with the same certificate, and ask Envoys for certificates as --tls-auth-clients says."`
	HTTPTLS        bool   `name:"http-tls" help:"Speak HTTPS on --http, with the same certificate. Probes need none."`
}

var errTLSFlags = errors.New("the TLS flags are inconsistent")

// certificate reads the files of the flags. It returns nil if nothing uses TLS.
func (f *tlsFlags) certificate(log *slog.Logger) (*certs.Store, error) {
	switch {
	case f.TLSListen == "" && !f.HTTPTLS && !f.RLSTLS:
		if f.TLSCertFile != "" || f.TLSKeyFile != "" || f.TLSCAFile != "" || f.TLSAuthClients != "no" {
			return nil, fmt.Errorf(
				"%w: no port uses --tls-cert-file, --tls-key-file, --tls-ca-file or --tls-auth-clients: give "+
					"--tls-listen, --http-tls or --rls-tls", errTLSFlags)
		}
		return nil, nil
	case f.TLSCertFile == "":
		return nil, fmt.Errorf("%w: --tls-key-file needs a certificate: give --tls-cert-file",
			errTLSFlags)
	case f.TLSKeyFile == "":
		return nil, fmt.Errorf(
			"%w: --tls-cert-file %s needs its private key: give --tls-key-file", errTLSFlags, f.TLSCertFile)
	case (f.TLSAuthClients != "no") != (f.TLSCAFile != ""):
		return nil, fmt.Errorf(
			"%w: --tls-ca-file and --tls-auth-clients (optional or required) must be given together", errTLSFlags)
	}
	store, err := certs.Open(certs.Files{Cert: f.TLSCertFile, Key: f.TLSKeyFile, CA: f.TLSCAFile}, log)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert-file, --tls-key-file, --tls-ca-file: %w", err)
	}
	warnOfDates(log, "--tls-cert-file", f.TLSCertFile, store)
	return store, nil
}

// warnOfDates logs that a certificate is not valid now. The server still starts, because the clock may be wrong, and a
// certificate can be replaced while the server runs.
func warnOfDates(log *slog.Logger, flag, file string, store *certs.Store) {
	if leaf, now := store.Leaf(), time.Now(); now.Before(leaf.NotBefore) || now.After(leaf.NotAfter) {
		log.Warn("the certificate is not valid now, so peers reject it; replace the file, weir reads it again by "+
			"itself",
			"flag", flag, "file", file, "not_before", leaf.NotBefore, "not_after", leaf.NotAfter)
	}
}

func (f *tlsFlags) clientAuth() tls.ClientAuthType {
	switch f.TLSAuthClients {
	case "required":
		return tls.RequireAndVerifyClientCert
	case "optional":
		return tls.VerifyClientCertIfGiven
	}
	return tls.NoClientCert
}
