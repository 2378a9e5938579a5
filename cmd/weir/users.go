package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/weir-project/weir/server"
	"github.com/weir-project/weir/server/acl"
	"github.com/weir-project/weir/server/commands"
)

// errNoCertificates refuses a rule that would never log a user in.
var errNoCertificates = errors.New("a rule san: needs --tls-auth-clients optional or required: clients show no " +
	"certificate otherwise")

// userLoader returns a function that reads the users file, or nil without a file.
func (s *serveCmd) userLoader() func() (*acl.Users, error) {
	if s.UsersFile == "" {
		return nil
	}
	return func() (*acl.Users, error) {
		f, err := os.Open(s.UsersFile)
		if err != nil {
			return nil, fmt.Errorf("--users-file: %w", err)
		}
		defer f.Close()
		text, err := io.ReadAll(io.LimitReader(f, acl.MaxUsersBytes+1))
		if err != nil {
			return nil, fmt.Errorf("--users-file: %w", err)
		}
		users, err := commands.ParseUsers(text)
		if err != nil {
			return nil, fmt.Errorf("--users-file %s: %w", s.UsersFile, err)
		}
		if users.HaveCertificates() && s.TLSAuthClients == "no" {
			return nil, fmt.Errorf("--users-file %s: %w", s.UsersFile, errNoCertificates)
		}
		return users, nil
	}
}

// reloadUsers reads the users file again, if there is one.
func (s *serveCmd) reloadUsers(log *slog.Logger, srv *server.Server) {
	if s.UsersFile == "" {
		return
	}
	if err := srv.ReloadUsers(); err != nil {
		log.Error("the users file is invalid; no user was changed", "error", err)
		return
	}
	log.Info("the users of the file are applied", "file", s.UsersFile)
}
