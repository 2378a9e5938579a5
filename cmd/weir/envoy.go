package main

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/weir-project/weir/server/envoyrls/rules"
)

// checkEnvoy refuses flags of Envoy's rate limit service that would have no effect.
func (s *serveCmd) checkEnvoy() error {
	switch {
	case len(s.EnvoyConfig) > 0 && s.RLS == "":
		return errors.New("--envoy-config has the limits for --rls, which is missing: give --rls, like 127.0.0.1:6382")
	case len(s.EnvoyConfig) == 0 && (s.EnvoyMergeDomains || s.EnvoyFields):
		return errors.New("--envoy-merge-domains and --envoy-fields need --envoy-config")
	}
	return nil
}

// envoyLimits reads --envoy-config before any slow step, because a server must not start without its configured
// limits. It returns nil without the flag.
func (s *serveCmd) envoyLimits(log *slog.Logger) (*rules.Config, error) {
	if len(s.EnvoyConfig) == 0 {
		return nil, nil
	}
	files, err := rules.Open(s.EnvoyConfig)
	if err != nil {
		return nil, fmt.Errorf("--envoy-config: %w", err)
	}
	config, err := rules.Parse(files, s.EnvoyMergeDomains)
	if err != nil {
		return nil, fmt.Errorf("--envoy-config: %w", err)
	}
	log.Info("limits for Envoy are read", "files", len(files), "domains", config.Len(),
		"limits", len(config.Rules()))
	return config, nil
}
