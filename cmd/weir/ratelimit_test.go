package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// setAll sets variables of the environment, like A=1.
func setAll(t *testing.T, variables ...string) {
	for _, v := range variables {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
}

// TestRatelimitEnvironment checks which flags the variables of envoyproxy/ratelimit set, and that a server that was not
// asked ignores them.
func TestRatelimitEnvironment(t *testing.T) {
	plain, err := parse()
	require.NoError(t, err)
	setAll(t, "PORT=18080", "GRPC_HOST=127.0.0.1", "RUNTIME_ROOT=/data", "RUNTIME_SUBDIRECTORY=ratelimit",
		"LOG_LEVEL=WARN", "GRPC_SERVER_TLS_CERT=/cert", "LIMIT_RESPONSE_HEADERS_ENABLED=1",
		"MERGE_DOMAIN_CONFIG=False", "LOG_FORMAT=",
		"CONFIG_GRPC_XDS_SERVER_URL=plane:1", "REDIS_URL=redis:6379")
	off, err := parse()
	require.NoError(t, err)
	require.Equal(t, plain, off)

	on, err := parse("--envoy-environment")
	require.NoError(t, err)
	require.Equal(t, "0.0.0.0:18080", on.HTTP)
	require.Equal(t, "127.0.0.1:8081", on.RLS)
	require.Equal(t, []string{"/data/ratelimit/config"}, on.EnvoyConfig)
	require.Equal(t, "warn", on.LogLevel)
	require.Equal(t, "text", on.LogFormat)
	require.Equal(t, "protected", on.HTTPCheck)
	require.True(t, on.EnvoyFields)
	require.False(t, on.EnvoyMergeDomains)
	require.Empty(t, on.EnvoyXDS)
	require.Empty(t, on.TLSCertFile, "without GRPC_SERVER_USE_TLS it has no effect")
	require.Equal(t, plain.Listen, on.Listen)

	file := filepath.Join(t.TempDir(), "weir.yaml")
	require.NoError(t, os.WriteFile(file, []byte("envoy-environment: true\nlog-level: error\n"), 0o600))
	setAll(t, "WEIR_RLS=127.0.0.1:1", "CONFIG_TYPE=GRPC_XDS_SOTW", "CONFIG_GRPC_XDS_NODE_ID=edge",
		"CONFIG_GRPC_XDS_SERVER_USE_TLS=true", "CONFIG_GRPC_XDS_SERVER_TLS_CACERT=/ca", "GRPC_SERVER_USE_TLS=TRUE",
		"GRPC_CLIENT_TLS_CACERT=/clients", "RUNTIME_APPDIRECTORY=limits")
	on, err = parse("--config="+file, "--http=127.0.0.1:2")
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:2", on.HTTP, "a flag wins")
	require.Equal(t, "127.0.0.1:1", on.RLS, "a variable of weir wins")
	require.Equal(t, "error", on.LogLevel, "the configuration file wins")
	require.Empty(t, on.EnvoyConfig)
	require.Equal(t, "plane:1 edge /ca", strings.Join([]string{on.EnvoyXDS, on.EnvoyXDSNode, on.EnvoyXDSCAFile}, " "))
	require.Equal(t, "true /cert /clients required", strings.Join([]string{map[bool]string{true: "true"}[on.RLSTLS],
		on.TLSCertFile, on.TLSCAFile, on.TLSAuthClients}, " "))

	for _, yes := range []string{"True", "1", "yes"} {
		require.NoError(t, os.WriteFile(file, []byte("envoy-environment: "+yes+"\n"), 0o600))
		on, err = parse("--config=" + file)
		require.NoError(t, err)
		require.Equal(t, "plane:1", on.EnvoyXDS, yes)
	}

	setAll(t, "WEIR_RLS=", "CONFIG_TYPE=FILE", "GRPC_UDS=/run/rls.sock")
	require.NoError(t, os.Unsetenv("WEIR_RLS"))
	on, err = parse("--envoy-environment")
	require.NoError(t, err)
	require.Equal(t, "/run/rls.sock", on.RLSSocket)
	require.Empty(t, on.RLS, "the socket is in place of the port")
	require.Equal(t, []string{"/data/ratelimit/limits"}, on.EnvoyConfig)
}

// TestWrongRatelimitEnvironment checks that an error names the variable, and that no value of a variable is told that
// may be a secret.
func TestWrongRatelimitEnvironment(t *testing.T) {
	setAll(t, "PORT=http", "LOG_LEVEL=loud", "CONFIG_TYPE=file", "SHADOW_MODE=true", "LIMIT_RESET_HEADER=X-Reset",
		"CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS=token:secret", "CONFIG_GRPC_XDS_SERVER_USE_TLS=true",
		"QUOTA_MODE=0", "LIMIT_LIMIT_HEADER=RateLimit-Limit")
	_, err := parse("--envoy-environment")
	for _, want := range []string{
		"PORT must be a port, 0 to 65535, not http", "LOG_LEVEL must be trace, debug, info",
		"CONFIG_TYPE must be FILE, GRPC_XDS_SOTW", "SHADOW_MODE must be false, 0, f; give the descriptors shadow_mode",
		"LIMIT_RESET_HEADER must be ratelimit-reset", "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS must be empty",
		"CONFIG_GRPC_XDS_SERVER_USE_TLS needs CONFIG_GRPC_XDS_SERVER_TLS_CACERT",
	} {
		require.ErrorContains(t, err, want)
	}
	for _, none := range []string{"secret", "QUOTA_MODE", "LIMIT_LIMIT_HEADER"} {
		require.NotContains(t, err.Error(), none)
	}

	var log strings.Builder
	tellUnused(slog.New(slog.NewTextHandler(&log, nil)), []string{"REDIS_AUTH=secret", "PORT=1", "REDIS_URL=",
		"BACKEND_TYPE=redis", "TRACING_ENABLED=true", "HOST=a", "SHADOW_MODE=false"})
	require.Contains(t, log.String(), `variables="[BACKEND_TYPE REDIS_AUTH]" because="weir keeps the counts itself"`)
	require.Contains(t, log.String(), "variables=[TRACING_ENABLED]")
	require.Equal(t, 2, strings.Count(log.String(), "\n"))
	require.NotContains(t, log.String(), "secret")
}
