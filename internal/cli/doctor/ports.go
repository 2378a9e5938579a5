package doctor

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/gomodule/redigo/redis"

	"github.com/weir-project/weir/internal/cli/healthcheck"
	"github.com/weir-project/weir/internal/cli/listener"
	"github.com/weir-project/weir/internal/cli/remote"
)

// running is a server that answers at the address of the flags.
type running struct {
	conn redis.Conn
	info map[string]string // the fields of INFO
}

// lookAtPorts tries the addresses. Either the server answers there, or they must be free.
func (d *Subject) lookAtPorts() (up *running, found []Finding) {
	up, clients := d.lookAtClientPort()
	found = append(found, clients)
	if err := d.Exposed; err != nil {
		found = append(found, Finding{Wrong, "ports", oneLine(err),
			"correct it: weir does not start with this setting"})
	}
	there := up != nil || clients.Verdict == Doubt // a server runs but refuses to answer
	found = append(found, d.lookAtHTTP(there)...)
	for _, other := range []struct {
		addr, whom, flag string
		used             bool
	}{
		{d.TLSListen, "clients with TLS", "--tls-listen", d.TLSListen != "" && d.Listen != ""},
		{d.RLS, "Envoys", "--rls", d.RLS != ""},
		{d.RaftPort, "nodes", "--raft-listen", d.Clustered && d.RaftAddr != ""},
	} {
		if other.used {
			found = append(found, lookAtPort(other.addr, other.whom, other.flag, there))
		}
	}
	return up, found
}

// lookAtClientPort asks the server, if a server answers.
func (d *Subject) lookAtClientPort() (*running, Finding) {
	addr := d.clientPort()
	conn, known, err := d.connect()
	noCertificate := Finding{Doubt, "ports", addr + " requires a client certificate",
		"use weir keys and weir cluster, which can present one with --tls-cert-file"}
	var said redis.Error
	switch {
	case errors.As(err, &said):
		return nil, Finding{Doubt, "ports", addr + " answers " + string(said),
			"give --user and --password-file, to ask the server about itself"}
	case errors.Is(err, syscall.ECONNREFUSED):
		return nil, lookAtFreePort(addr, "clients")
	case err != nil && known && d.ClientAuth == tls.RequireAndVerifyClientCert:
		return nil, noCertificate
	case err != nil:
		return nil, Finding{Wrong, "ports", oneLine(err),
			"find out which program listens there, or choose another address"}
	}
	text, err := redis.String(conn.Do("INFO", "everything"))
	switch {
	case errors.As(err, &said):
		conn.Close()
		return nil, Finding{Doubt, "ports", addr + " answers " + string(said),
			"log in as a user that may send INFO: --user and --password-file"}
	case err != nil && known && d.ClientAuth == tls.RequireAndVerifyClientCert: // TLS 1.3 refuses only here
		conn.Close()
		return nil, noCertificate
	case err != nil:
		conn.Close()
		return nil, Finding{Wrong, "ports", addr + " belongs to another program: " + oneLine(err),
			"stop that program, or choose another address"}
	}
	up := &running{conn, infoFields(text)}
	if up.info["weir_version"] == "" {
		conn.Close()
		return nil, Finding{Wrong, "ports", addr + " belongs to another server, Redis " + up.info["redis_version"],
			"stop that server, or choose another address with --listen"}
	}
	return up, Finding{Fine, "ports", addr + " for clients: weir answers, up " + up.info["uptime_in_seconds"] + " s",
		""}
}

func (d *Subject) clientPort() string {
	if d.Listen == "" {
		return d.TLSListen
	}
	return d.Listen
}

// connect logs in to the server that the flags describe. A server that speaks only TLS must present the certificate
// that the flags name, because the password is for no other server. known reports that it did.
func (d *Subject) connect() (conn redis.Conn, known bool, err error) {
	if d.PasswordError != nil {
		return nil, false, d.PasswordError
	}
	flags := remote.Flags{User: d.User}
	if d.Listen != "" {
		conn, err = flags.Dial(d.Listen, d.Password)
		return conn, false, err
	}
	store, err := d.Certificate()
	if err != nil {
		return nil, false, err
	}
	conn, err = flags.DialWith(d.TLSListen, d.Password, &tls.Config{
		MinVersion: tls.VersionTLS12, InsecureSkipVerify: true, // VerifyConnection compares the certificate instead
		VerifyConnection: func(state tls.ConnectionState) error {
			if leaf := state.PeerCertificates[0]; !leaf.Equal(store.Leaf()) {
				return fmt.Errorf("%s presents another certificate than %s, for %s", d.TLSListen, d.TLSCertFile,
					leaf.Subject)
			}
			known = true
			return nil
		},
	})
	return conn, known, err
}

// infoFields parses the reply of INFO.
func infoFields(text string) map[string]string {
	fields := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// lookAtFreePort checks that it can listen at an address.
func lookAtFreePort(addr, whom string) Finding {
	ln, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) && listener.WhoListens(addr) != "" {
		return Finding{Wrong, "ports", fmt.Sprintf("%s for %s: %v by %s", addr, whom, err, listener.WhoListens(addr)),
			"stop that program, or choose another address"}
	}
	if err != nil {
		return Finding{Wrong, "ports", fmt.Sprintf("%s for %s: %v", addr, whom, err),
			"choose a free address of this machine"}
	}
	ln.Close()
	return Finding{Fine, "ports", addr + " for " + whom + " is free", ""}
}

// lookAtHTTP asks /readyz. there means that a server runs with these flags.
func (d *Subject) lookAtHTTP(there bool) []Finding {
	if d.HTTP == "" {
		return []Finding{{Doubt, "ports", "no --http: there is no /readyz, no /metrics and no page",
			"give --http an address, unless nothing monitors this server"}}
	}
	var said strings.Builder
	err := (&healthcheck.Command{HTTP: d.HTTP, HTTPTLS: d.HTTPTLS}).Ask(io.Writer(&said))
	ready := strings.Join(strings.Fields(said.String()), " ")
	switch {
	case err == nil && !there:
		return []Finding{{Wrong, "ports", d.HTTP + " for probes belongs to another server, which answers " + ready,
			"stop that server, or choose another address with --http"}}
	case err == nil:
		return []Finding{{Fine, "ports", d.HTTP + " for probes answers " + ready, ""}}
	case errors.Is(err, healthcheck.ErrNotReady):
		return []Finding{{Wrong, "ports", d.HTTP + " for probes answers " + ready,
			"wait while the server starts or stops; otherwise see the lines about the cluster"}}
	case errors.Is(err, syscall.ECONNREFUSED) && there:
		return []Finding{{Wrong, "ports", d.HTTP + " for probes: nothing listens there, but the server runs",
			"start the server with the same --http, or see in its log why the port closed"}}
	case errors.Is(err, syscall.ECONNREFUSED):
		return []Finding{lookAtFreePort(d.HTTP, "probes")}
	}
	return []Finding{{Wrong, "ports", d.HTTP + " for probes: " + oneLine(err),
		"find out which program listens there, or choose another address with --http"}}
}

// lookAtPort checks a port without sending a request. The port must be open if the server runs, and free otherwise.
func lookAtPort(addr, whom, flag string, there bool) Finding {
	if !there {
		return lookAtFreePort(addr, whom)
	}
	conn, err := net.DialTimeout("tcp", addr, healthcheck.Timeout)
	if err != nil {
		return Finding{Wrong, "ports", addr + " for " + whom + ": " + oneLine(err), "the server runs with another " +
			flag + ": give it the same flags"}
	}
	conn.Close()
	return Finding{Fine, "ports", addr + " for " + whom + " is open", ""}
}
