package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// parse reads a command line in the same way as weir.
func parse(args ...string) (serveCmd, error) {
	var c cli
	_, err := newParser(&c).Parse(append([]string{"serve"}, args...))
	return c.Serve, err
}

func configWith(t *testing.T, text string) string {
	path := filepath.Join(t.TempDir(), "weir.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestDefaults(t *testing.T) {
	s, err := parse()
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:6380", s.Listen)
	require.Equal(t, "127.0.0.1:6381", s.HTTP)
	require.Equal(t, "weir-data", s.DataDir)
	require.True(t, s.ProtectedMode)
	require.EqualValues(t, 128<<10, s.MaxBulkBytes)
	require.Equal(t, time.Minute, s.IDLifetime)
	require.Equal(t, 24*time.Hour, s.MaxDowntimeCredit)
	require.True(t, s.MaxMemory.auto)
}

// TestPrecedence checks that flags take precedence over the environment, the environment over the file, and the file
// over the defaults.
func TestPrecedence(t *testing.T) {
	file := configWith(t,
		"listen: 127.0.0.1:1\nhttp: 127.0.0.1:1\ndata-dir: from-file\nmax-memory: 1gb\nprotected-mode: "+
			"false\nid-lifetime: 5s\nmax-clients: 7\n")
	t.Setenv("WEIR_LISTEN", "127.0.0.1:2")
	t.Setenv("WEIR_HTTP", "")
	s, err := parse("--config", file, "--data-dir", "from-flag")
	require.NoError(t, err)
	require.Equal(t, "from-flag", s.DataDir)
	require.Equal(t, "127.0.0.1:2", s.Listen)
	require.Equal(t, "", s.HTTP, "an empty variable must count as a value")
	require.EqualValues(t, 1<<30, s.MaxMemory.bytes)
	require.False(t, s.MaxMemory.auto)
	require.False(t, s.ProtectedMode)
	require.Equal(t, 5*time.Second, s.IDLifetime)
	require.Equal(t, 7, s.MaxClients)
	require.Equal(t, "info", s.LogLevel)

	s, err = parse("--config", file, "--listen", "127.0.0.1:3")
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:3", s.Listen)

	t.Setenv("WEIR_CONFIG", file)
	s, err = parse()
	require.NoError(t, err)
	require.Equal(t, "from-file", s.DataDir, "a variable must be able to name the file")
}

func TestEveryFlagHasAVariable(t *testing.T) {
	var c cli
	for _, command := range newParser(&c).Model.Children {
		for _, flag := range command.Flags {
			if command.Name != "serve" || flag.Name == "help" {
				continue
			}
			want := "WEIR_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
			require.Equal(t, []string{want}, flag.Envs)
			require.NotEmpty(t, flag.Help)
		}
	}
}

func TestBadConfigFiles(t *testing.T) {
	for _, c := range []struct{ text, says string }{
		{"lisen: 127.0.0.1:1\n", `line 1: unknown key "lisen"`},
		{"listen: 127.0.0.1:1\nconfig: other.yaml\n", `line 2: unknown key "config"`},
		{"help: true\n", `unknown key "help"`},
		{"listen: 127.0.0.1:1\nlisten: 127.0.0.1:2\n", "twice"},
		{"listen: [a, b]\n", `key "listen" needs a single value`},
		{"listen:\n", `key "listen" needs a single value`},
		{"- listen\n", "a line must be like"},
		{"listen: 'open\n", "yaml"},
		{"max-clients: many\n", "--max-clients"},
		{"when-full: shrug\n", "least-harm"},
		{"max-memory: 1tb\n", "must be like 64kb, 100mb or 4gb (in kb, mb or gb"},
		{"max-memory: 4GiB\n", "must be like 64kb, 100mb or 4gb (in kb, mb or gb"},
	} {
		_, err := parse("--config", configWith(t, c.text))
		require.ErrorContains(t, err, c.says, c.text)
	}
	_, err := parse("--config", filepath.Join(t.TempDir(), "none.yaml"))
	require.ErrorIs(t, err, os.ErrNotExist)
	s, err := parse("--config", configWith(t, "# nothing\n"))
	require.NoError(t, err)
	require.Equal(t, "weir-data", s.DataDir)
}

func FuzzConfig(f *testing.F) {
	f.Add("listen: 127.0.0.1:1\n")
	f.Add("a: &b [*b]\n")
	f.Fuzz(func(t *testing.T, text string) {
		_, _ = parseConfig(strings.NewReader(text), nil)
	})
}

func TestPassword(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(file, []byte("se cret\r\n"), 0o600))
	s, err := parse("--requirepass-file", file)
	require.NoError(t, err)
	password, err := s.readPassword()
	require.NoError(t, err)
	require.Equal(t, "se cret", password)

	s.Requirepass = "other"
	_, err = s.readPassword()
	require.ErrorContains(t, err, "give one of them")

	require.NoError(t, os.WriteFile(file, []byte("\n"), 0o600))
	s.Requirepass = ""
	_, err = s.readPassword()
	require.ErrorContains(t, err, "is empty")
	s.RequirepassFile = file + ".none"
	_, err = s.readPassword()
	require.ErrorIs(t, err, os.ErrNotExist)
}
