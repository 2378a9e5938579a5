package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/weir-project/weir/internal/filewatch"
	"github.com/weir-project/weir/server/envoyrls"
	"github.com/weir-project/weir/server/envoyrls/rules"
	"github.com/weir-project/weir/server/envoyrls/xds"
	"github.com/weir-project/weir/server/service"
)

// xdsFlags are the flags of a control plane.
type xdsFlags struct {
	EnvoyXDS           string `name:"envoy-xds" placeholder:"HOST:PORT" help:"Control plane that sends the limits for --rls, in place of --envoy-config; see docs/http.md. Until the first limits arrive, calls fail."`
	EnvoyXDSNode       string `name:"envoy-xds-node" default:"default" help:"Id of this server for the control plane."`
	EnvoyXDSCAFile     string `name:"envoy-xds-ca-file" placeholder:"FILE" help:"Authorities of the control plane's certificate. Turns TLS on."`
	EnvoyXDSCertFile   string `name:"envoy-xds-cert-file" placeholder:"FILE" help:"Certificate for the control plane, read before each connection."`
	EnvoyXDSKeyFile    string `name:"envoy-xds-key-file" placeholder:"FILE" help:"Its private key."`
	EnvoyXDSServerName string `name:"envoy-xds-server-name" placeholder:"NAME" help:"Name in the control plane's certificate, if not the host of --envoy-xds."`
}

// servesEnvoys reports whether Envoys can ask this server, at a port or a Unix socket.
func (s *serveCmd) servesEnvoys() bool { return s.RLS != "" || s.RLSSocket != "" }

// checkEnvoy refuses flags of Envoy's rate limit service that would have no effect.
func (s *serveCmd) checkEnvoy() error {
	secured := s.EnvoyXDSCertFile != "" || s.EnvoyXDSKeyFile != "" || s.EnvoyXDSServerName != ""
	_, _, addrErr := net.SplitHostPort(s.EnvoyXDS)
	switch {
	case len(s.EnvoyConfig) > 0 && s.EnvoyXDS != "":
		return errors.New("--envoy-config and --envoy-xds both have the limits for --rls: give one of them")
	case len(s.EnvoyConfig) > 0 && !s.servesEnvoys():
		return errors.New("--envoy-config has the limits for --rls, which is missing: give --rls, like 127.0.0.1:6382")
	case s.EnvoyXDS != "" && !s.servesEnvoys():
		return errors.New("--envoy-xds has the limits for --rls, which is missing: give --rls, like 127.0.0.1:6382")
	case len(s.EnvoyConfig) == 0 && s.EnvoyXDS == "" && (s.EnvoyMergeDomains || s.EnvoyFields):
		return errors.New("--envoy-merge-domains and --envoy-fields need --envoy-config or --envoy-xds")
	case s.EnvoyXDS == "" && (secured || s.EnvoyXDSCAFile != "" || s.EnvoyXDSNode != "default"):
		return errors.New("the flags that begin with --envoy-xds- need --envoy-xds")
	case s.EnvoyXDS != "" && addrErr != nil:
		return fmt.Errorf("--envoy-xds must be HOST:PORT, like gateway:18001: %w", addrErr)
	case secured && s.EnvoyXDSCAFile == "":
		return errors.New("--envoy-xds-cert-file, --envoy-xds-key-file and --envoy-xds-server-name need TLS: give " +
			"--envoy-xds-ca-file")
	case (s.EnvoyXDSCertFile == "") != (s.EnvoyXDSKeyFile == ""):
		return errors.New("--envoy-xds-cert-file and --envoy-xds-key-file belong together: give both")
	}
	return nil
}

// credentials reads the files for connections with the control plane.
func (f *xdsFlags) credentials() (credentials.TransportCredentials, error) {
	if f.EnvoyXDSCAFile == "" {
		return insecure.NewCredentials(), nil
	}
	trusted, err := os.ReadFile(f.EnvoyXDSCAFile)
	if err != nil {
		return nil, fmt.Errorf("--envoy-xds-ca-file: %w", err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool(), ServerName: f.EnvoyXDSServerName}
	if !config.RootCAs.AppendCertsFromPEM(trusted) {
		return nil, fmt.Errorf("--envoy-xds-ca-file: %s has no certificate in PEM", f.EnvoyXDSCAFile)
	}
	if f.EnvoyXDSCertFile != "" {
		own, err := tls.LoadX509KeyPair(f.EnvoyXDSCertFile, f.EnvoyXDSKeyFile)
		if err != nil {
			return nil, fmt.Errorf("--envoy-xds-cert-file: %w", err)
		}
		config.Certificates = []tls.Certificate{own}
	}
	return credentials.NewTLS(config), nil
}

// envoyLoader keeps the limits of Envoy's rate limit service up to date: from files, or from a control plane.
type envoyLoader struct {
	watch  *filewatch.Watcher // of --envoy-config, else nil
	plane  *xds.Client        // of --envoy-xds, else nil
	first  *rules.Config      // of the files at the start
	merge  bool
	log    *slog.Logger
	envoys *envoyrls.Server
	stats  *service.SourceStats
}

// envoyLimits reads the files of --envoy-config and --envoy-xds before any slow step, because a server must not start
// without its configured limits. It returns nil without these flags.
func (s *serveCmd) envoyLimits(log *slog.Logger) (*envoyLoader, error) {
	l := &envoyLoader{merge: s.EnvoyMergeDomains, log: log}
	switch {
	case len(s.EnvoyConfig) > 0:
		l.watch = rules.Watch(s.EnvoyConfig)
		files, err := l.watch.Read()
		if err == nil {
			l.first, err = rules.Parse(rules.Files(files), l.merge)
		}
		if err != nil {
			return nil, fmt.Errorf("--envoy-config: %w", err)
		}
	case s.EnvoyXDS != "":
		if _, err := s.credentials(); err != nil {
			return nil, err
		}
		l.plane = &xds.Client{Addr: s.EnvoyXDS, Node: s.EnvoyXDSNode, Credentials: s.credentials, Log: log,
			Apply: l.received}
	default:
		return nil, nil
	}
	return l, nil
}

// keep puts the limits in force, and each change of them, until the returned function is called.
func (l *envoyLoader) keep(envoys *envoyrls.Server, stats *service.SourceStats) (stop func()) {
	if l == nil {
		return func() {}
	}
	l.envoys, l.stats = envoys, stats
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	if l.plane != nil {
		envoys.AwaitConfig()
		running.Go(func() { l.plane.Run(ctx) })
	} else {
		_ = l.apply(l.first, nil)
		running.Go(func() { l.follow(ctx) })
	}
	return func() {
		cancel()
		running.Wait()
	}
}

// follow applies each change of the files until ctx ends.
func (l *envoyLoader) follow(ctx context.Context) {
	tick := time.NewTicker(filewatch.PollEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		files, changed, err := l.watch.Poll()
		if !changed {
			continue
		}
		var config *rules.Config
		if err == nil {
			config, err = rules.Parse(rules.Files(files), l.merge)
		}
		_ = l.apply(config, err) // it was logged
	}
}

// received applies the limits of the control plane.
func (l *envoyLoader) received(sources []rules.Source, err error) error {
	if err != nil {
		return l.apply(nil, err)
	}
	return l.apply(rules.Build(sources, l.merge))
}

// apply puts limits in force, unless reading them failed. It returns that error.
func (l *envoyLoader) apply(config *rules.Config, err error) error {
	l.stats.Tell(err == nil)
	if err != nil {
		l.log.Error("the limits for Envoy are invalid; no limit was changed", "error", err)
		return err
	}
	l.envoys.SetConfig(config)
	l.log.Info("the limits for Envoy are in force", "domains", config.Len(), "limits", len(config.Rules()))
	return nil
}
