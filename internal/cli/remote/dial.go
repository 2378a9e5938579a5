package remote

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/weir-project/weir/certs"
)

const (
	// dialTimeout is long for a healthy node.
	dialTimeout = 5 * time.Second
	// replyTimeout is longer than a change of the members, a snapshot of a large state, and an election meanwhile.
	replyTimeout = time.Minute
	// MaxHops bounds how often a command is redirected to another node. The leader rarely changes twice meanwhile.
	MaxHops = 3
)

// Flags configure the login and TLS of a connection. They read no environment variables, because the same names
// belong to flags of weir serve: WEIR_TLS_CERT_FILE is the server's certificate.
type Flags struct {
	User        string `env:"-" placeholder:"NAME" help:"Log in as this user; default unless given."`
	TLS         bool   `name:"tls" env:"-" help:"Speak TLS."`
	TLSCAFile   string `name:"tls-ca-file" env:"-" placeholder:"FILE" help:"Certificates of the authorities that sign the server's; the machine's own unless given."`
	TLSCertFile string `name:"tls-cert-file" env:"-" placeholder:"FILE" help:"Certificate to show to a server that requires one."`
	TLSKeyFile  string `name:"tls-key-file" env:"-" placeholder:"FILE" help:"Private key of the certificate."`

	database int // of the connection; see Database.Select
}

// Database is the flag of commands that work on the keys of one database.
type Database struct {
	Number int `name:"database" env:"-" placeholder:"N" help:"Number of the database that has the keys, 0 to 15; 0 unless given."`
}

// Select makes later connections work in the database.
func (d *Database) Select(f *Flags) { f.database = d.Number }

// Dial connects and logs in.
func (f *Flags) Dial(addr, password string) (redis.Conn, error) {
	if !f.TLS {
		if err := f.Refuse("--tls"); err != nil {
			return nil, err
		}
		return f.DialWith(addr, password, nil)
	}
	config, err := f.TLSConfig()
	if err != nil {
		return nil, err
	}
	return f.DialWith(addr, password, config)
}

// DialWith does the same as Dial with a TLS configuration. A nil configuration means no TLS.
func (f *Flags) DialWith(addr, password string, config *tls.Config) (redis.Conn, error) {
	options := []redis.DialOption{
		redis.DialUsername(f.User), redis.DialPassword(password), redis.DialConnectTimeout(dialTimeout),
		redis.DialReadTimeout(replyTimeout), redis.DialWriteTimeout(replyTimeout),
		redis.DialUseTLS(config != nil), redis.DialTLSConfig(config), redis.DialDatabase(f.database),
	}
	conn, err := redis.Dial("tcp", addr, options...)
	if err != nil {
		return nil, noServer(addr, err)
	}
	if _, err := conn.Do("PING"); err != nil && !aboutRights(err) {
		conn.Close()
		return nil, noServer(addr, err)
	}
	return conn, nil
}

// aboutRights reports whether an error is a refusal for lack of a login or a permission. A server that answers so is a
// server of the expected kind.
func aboutRights(err error) bool {
	var said redis.Error
	return errors.As(err, &said) &&
		(strings.HasPrefix(string(said), "NOAUTH") || strings.HasPrefix(string(said), "NOPERM"))
}

// noServer explains why an address does not answer.
func noServer(addr string, err error) error {
	var refused redis.Error
	switch {
	case errors.As(err, &refused):
		return fmt.Errorf("the server at %s refuses the connection: %w", addr, err)
	case errors.As(err, new(tls.RecordHeaderError)):
		return fmt.Errorf("the server at %s does not speak TLS, leave --tls out: %w", addr, err)
	case errors.As(err, new(net.Error)), errors.As(err, new(*tls.CertificateVerificationError)):
		return fmt.Errorf("cannot reach a server at %s (--addr): %w", addr, err)
	}
	return fmt.Errorf("the server at %s does not speak RESP: is this a port for TLS (--tls), or for HTTP? (%w)", addr,
		err)
}

// Refuse returns an error for TLS files without a flag that enables TLS. A user who names them does not expect the
// password to be sent in plain text.
func (f *Flags) Refuse(without string) error {
	for _, file := range []struct{ flag, path string }{
		{"--tls-ca-file", f.TLSCAFile}, {"--tls-cert-file", f.TLSCertFile}, {"--tls-key-file", f.TLSKeyFile},
	} {
		if file.path != "" {
			return fmt.Errorf("%s needs %s", file.flag, without)
		}
	}
	return nil
}

// TLSConfig reads the files that the flags name.
func (f *Flags) TLSConfig() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.TLSCAFile != "" {
		pem, err := os.ReadFile(f.TLSCAFile)
		if err != nil {
			return nil, fmt.Errorf("--tls-ca-file: %w", err)
		}
		if config.RootCAs = x509.NewCertPool(); !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--tls-ca-file: %s: %w", f.TLSCAFile, certs.ErrNoAuthority)
		}
	}
	if f.TLSCertFile == "" && f.TLSKeyFile == "" {
		return config, nil
	}
	cert, err := tls.LoadX509KeyPair(f.TLSCertFile, f.TLSKeyFile)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert-file: %w", err)
	}
	config.Certificates = []tls.Certificate{cert}
	return config, nil
}
