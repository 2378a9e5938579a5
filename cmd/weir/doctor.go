package main

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"os"

	"github.com/weir-project/weir/certs"
	"github.com/weir-project/weir/internal/cli/cmdline"
	"github.com/weir-project/weir/internal/cli/doctor"
	"github.com/weir-project/weir/internal/cli/listener"
	"github.com/weir-project/weir/raftstore"
)

// doctorCmd checks the settings of weir serve with the same flags, variables and file. It also asks the server if one
// runs with them.
type doctorCmd struct {
	serveCmd     `embed:""`
	User         string `env:"-" placeholder:"NAME" help:"Ask the running server as this user; default unless given."`
	PasswordFile string `env:"-" placeholder:"FILE" help:"File that contains that user's password; the server's own unless given."`
	JSON         bool   `env:"-" name:"json" help:"Print JSON."`

	slips error // variables that no flag reads, and invalid values
}

// doctorName is the name of the command.
const doctorName = "doctor"

func (d *doctorCmd) Run() error {
	return doctor.Tell(os.Stdout, d.subject().Examine(), d.JSON)
}

// subject reads the files that weir serve would read with these flags.
func (d *doctorCmd) subject() *doctor.Subject {
	quiet := slog.New(slog.DiscardHandler)
	password, passwordErr := d.readPassword()
	_, secretErr := cmdline.SecretFrom("cluster-secret", d.ClusterSecret, d.ClusterSecretFile)
	_, policiesErr := openPolicies(d.Policies, quiet)
	_, limitsErr := d.envoyLimits(quiet)
	var usersErr error
	if load := d.userLoader(); load != nil {
		_, usersErr = load()
	}
	s := &doctor.Subject{
		Config: d.Config, Mistakes: errors.Join(d.slips, d.check(), passwordErr, secretErr, policiesErr, usersErr,
			limitsErr),
		DataDir: d.DataDir, NodeID: d.NodeID, NodeName: d.nodeName(), Clustered: d.clustered(),
		Listen: d.Listen, TLSListen: d.TLSListen, HTTP: d.HTTP, HTTPTLS: d.HTTPTLS, RLS: d.RLS,
		RaftAddr: d.RaftAddr, RaftPort: d.raftPort(), Advertise: d.Advertise, Join: d.Join, Exposed: d.exposed(),
		RequirepassFile: d.RequirepassFile, ClusterSecretFile: d.ClusterSecretFile,
		TLSCertFile: d.TLSCertFile, TLSKeyFile: d.TLSKeyFile,
		RaftTLSCertFile: d.RaftTLSCertFile, RaftTLSKeyFile: d.RaftTLSKeyFile, RaftTLSCAFile: d.RaftTLSCAFile,
		ClientAuth:      d.clientAuth(),
		Certificate:     func() (*certs.Store, error) { return d.certificate(quiet) },
		NodeCertificate: func() (*certs.Store, error) { return d.nodeCertificate(quiet) },
		MaxClients:      d.MaxClients, FileLimit: fileLimit, BesidesClients: d.besidesClients(),
		MachineMemory: machineMemory(os.DirFS("/")), MemoryBound: d.MaxMemory.resolve,
		User: d.User, Password: password, PasswordError: passwordErr,
	}
	if d.PasswordFile != "" {
		s.Password, s.PasswordError = cmdline.SecretFrom("password", "", d.PasswordFile)
	}
	return s
}

// nodeCertificate reads the certificate for other nodes. It returns nil if no flag names one.
func (d *doctorCmd) nodeCertificate(log *slog.Logger) (*certs.Store, error) {
	node := raftstore.Options{NodeID: d.NodeID}
	err := d.certifyNode(&node, log)
	store, _ := node.Certificates.(*certs.Store)
	return store, err
}

// exposed returns an error if other machines could reach a port without authentication.
func (d *doctorCmd) exposed() error {
	password, _ := d.readPassword()
	secret, _ := cmdline.SecretFrom("cluster-secret", d.ClusterSecret, d.ClusterSecretFile)
	logins, known := password != "" || d.UsersFile != "", d.clientAuth() == tls.RequireAndVerifyClientCert
	err := errors.Join(
		listener.CheckExposure("--listen", d.Listen, logins, d.ProtectedMode && d.Listen != ""),
		listener.CheckExposure("--tls-listen", d.TLSListen, logins, d.ProtectedMode && d.TLSListen != "" && !known),
		listener.CheckExposure("--http", d.HTTP, logins, d.ProtectedMode && d.HTTP != ""),
		listener.CheckExposure("--rls", d.RLS, logins, d.ProtectedMode && d.RLS != "" && !(d.RLSTLS && known)))
	if d.clustered() {
		err = errors.Join(err, d.checkRaftExposure(secret != "" || d.RaftTLSCertFile != ""))
	}
	return err
}

// nodeName returns the id of a node with these flags, or "".
func (d *doctorCmd) nodeName() string {
	if d.clustered() && d.NodeID == "" {
		return soloID
	}
	return d.NodeID
}
