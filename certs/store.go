package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// checkEvery bounds how often handshakes check the files, so that a flood of handshakes causes no flood of system
// calls.
const checkEvery = time.Second

// ErrNoAuthority: a file of authorities contains no certificate.
var ErrNoAuthority = errors.New("the file contains no PEM certificate")

// Files names the PEM files.
type Files struct {
	Cert, Key string // the certificate with its intermediates, and its private key
	CA        string // certificates of the trusted authorities; "": none
}

// Store holds the last valid content of the files. Its methods may be called from any goroutine.
type Store struct {
	files   Files
	log     *slog.Logger
	current atomic.Pointer[material]

	checked atomic.Int64 // time of the last check, Unix nanoseconds
	mu      sync.Mutex   // held while the files are read
	seen    stamps
}

// material is the content of the files. It is immutable.
type material struct {
	cert  *tls.Certificate
	trust *x509.CertPool // nil without a file of authorities
}

// Open reads the files. After an error the store must not be used.
func Open(files Files, log *slog.Logger) (*Store, error) {
	s := &Store{files: files, log: log}
	s.checked.Store(time.Now().UnixNano())
	return s, s.Reload()
}

// Reload reads the files again. After an error the previous content stays in force.
func (s *Store) Reload() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read(s.files.stamps())
}

// read reads the files and records seen, the stamps that the caller took before. The caller holds mu.
func (s *Store) read(seen stamps) error {
	s.seen = seen // an unusable file is not read again until it changes
	fresh, err := s.files.read()
	if err == nil {
		s.current.Store(fresh)
	}
	return err
}

// now returns the current material, and first checks the files if a check is due.
func (s *Store) now() *material {
	last, now := s.checked.Load(), time.Now().UnixNano()
	if now-last >= int64(checkEvery) && s.checked.CompareAndSwap(last, now) {
		s.look()
	}
	return s.current.Load()
}

// look reloads the files if they have changed.
func (s *Store) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.files.stamps()
	if seen == s.seen {
		return
	}
	if err := s.read(seen); err != nil {
		s.log.Error("the changed certificate files cannot be used; the previous certificate stays in use", "error",
			err)
		return
	}
	s.log.Info("certificate reloaded", "file", s.files.Cert, "expires", s.Leaf().NotAfter)
}

// Leaf returns the current certificate, for inspection.
func (s *Store) Leaf() *x509.Certificate { return s.current.Load().cert.Leaf }

func (f Files) read() (*material, error) {
	cert, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %w", f.Cert, f.Key, err)
	}
	m := &material{cert: &cert}
	if f.CA == "" {
		return m, nil
	}
	pem, err := os.ReadFile(f.CA)
	if err != nil {
		return nil, err
	}
	m.trust = x509.NewCertPool()
	if !m.trust.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: %w", f.CA, ErrNoAuthority)
	}
	return m, nil
}

// stamps detect changes of the files. A missing file has the zero stamp.
type stamps [3]stamp

type stamp struct{ modifiedNs, bytes int64 }

func (f Files) stamps() (all stamps) {
	for i, path := range []string{f.Cert, f.Key, f.CA} {
		if info, err := os.Stat(path); err == nil {
			all[i] = stamp{info.ModTime().UnixNano(), info.Size()}
		}
	}
	return all
}

// Verify verifies the current certificate against the current authorities for one of its uses. A peer that trusts the
// same authorities performs this verification.
func (s *Store) Verify(use x509.ExtKeyUsage) error {
	m := s.current.Load()
	between := x509.NewCertPool()
	for _, der := range m.cert.Certificate[1:] {
		if cert, err := x509.ParseCertificate(der); err == nil {
			between.AddCert(cert)
		}
	}
	_, err := m.cert.Leaf.Verify(
		x509.VerifyOptions{Roots: m.trust, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{use}})
	return err
}
