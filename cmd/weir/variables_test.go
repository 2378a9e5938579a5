package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/cli/cmdline"
)

// TestVariablesOfKubernetesAreNoSlips checks that the variables which Kubernetes sets for a Service do not stop a
// server. One Service is named weir, and another name begins with weir.
func TestVariablesOfKubernetesAreNoSlips(t *testing.T) {
	var env []string
	for _, name := range []string{"WEIR", "WEIR_NODES"} {
		for _, text := range []string{
			"_SERVICE_HOST=10.96.0.1", "_SERVICE_PORT=6380", "_SERVICE_PORT_REDIS=6380", "_PORT=tcp://10.96.0.1:6380",
			"_PORT_6380_TCP=tcp://10.96.0.1:6380", "_PORT_6380_TCP_PROTO=tcp", "_PORT_6380_TCP_PORT=6380",
			"_PORT_6380_TCP_ADDR=10.96.0.1", "_PORT_53_UDP=udp://[fd00::1]:53", "_PORT_53_UDP_ADDR=fd00::1",
		} {
			env = append(env, name+text)
		}
	}
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(), env...)
	p := startCommand(t, cmd, "--data-dir=")
	require.Equal(t, "PONG", p.do("PING"))

	parser := newParser(new(cli))
	serve := cmdline.Below(parser.Model.Node, "serve")
	require.NoError(t, cmdline.CheckVariables(parser.Model.Node, serve, env))
	for _, almost := range []string{
		"WEIR_PORT=6380", "WEIR_PORT=", "WEIR_SERVICE_HOST=weir", "WEIR_SERVICE=10.96.0.1",
		"WEIR_PORT_6380=tcp://10.96.0.1:6380",
		"WEIR_PORT_6380_TCP_PROTO=6380", "WEIR_HOST=10.96.0.1", "WEIR_PORT_REDIS_TCP=tcp://10.96.0.1:6380",
	} {
		name, _, _ := strings.Cut(almost, "=")
		require.ErrorContains(t, cmdline.CheckVariables(parser.Model.Node, serve, []string{almost}),
			"unknown variable "+name)
	}
}

// TestVariablesAreOfSomeCommand checks that a command accepts the variables of other commands. Commands without
// variables do not check them.
func TestVariablesAreOfSomeCommand(t *testing.T) {
	parser := newParser(new(cli))
	app := parser.Model.Node
	others := []string{"WEIR_JOIN=x", "WEIR_ADDR=y", "WEIRTEST_X=1", "HOME=/"}
	require.NoError(t, cmdline.CheckVariables(app, cmdline.Below(app, "healthcheck"), others))
	require.NoError(t, cmdline.CheckVariables(app, cmdline.Below(app, "version"), []string{"WEIR_NOPE=1"}))
	require.NoError(t, cmdline.CheckVariables(app, cmdline.Below(app, "__complete"), []string{"WEIR_NOPE=1"}))
	require.Error(t, cmdline.CheckVariables(app, cmdline.Below(app, "healthcheck"), []string{"WEIR_NOPE=1"}))
}

// composeVariables are the variables that the compose files read on the host. They never reach weir.
var composeVariables = []string{
	"WEIR_IMAGE", "WEIR_MEMORY", "WEIR_SECRET_FILE", "WEIR_PORT", "WEIR_PORT_A", "WEIR_PORT_B", "WEIR_PORT_C",
	"WEIR_HTTP_PORT", "WEIR_HTTP_PORT_A", "WEIR_HTTP_PORT_B", "WEIR_HTTP_PORT_C",
}

// TestVariablesOfThisRepository checks that every WEIR_* variable in this repository belongs to a flag, to Kubernetes
// or to compose. An unknown variable would stop the weir that a test or a script starts.
func TestVariablesOfThisRepository(t *testing.T) {
	known := append(cmdline.Variables(newParser(new(cli)).Model.Node, nil), composeVariables...)
	name := regexp.MustCompile(`\bWEIR_[A-Z0-9_]*[A-Z0-9]\b`)
	require.NoError(t, filepath.WalkDir("../..", func(path string, file fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if file.IsDir() && slices.Contains([]string{".git", ".cache", "bin", "node_modules"}, file.Name()) {
			return fs.SkipDir
		}
		text := slices.Contains([]string{".go", ".sh", ".yaml", ".md", ".service", ""}, filepath.Ext(path))
		about := strings.HasPrefix(file.Name(), "slips_") || strings.HasPrefix(file.Name(), "variables")
		if !file.Type().IsRegular() || !text || about {
			return nil
		}
		page, err := os.ReadFile(path)
		for _, v := range name.FindAllString(string(page), -1) {
			service := strings.HasPrefix(v, "WEIR_SERVICE") // docs/operations.md speaks of them
			require.True(t, service || slices.Contains(known, v), "%s in %s must belong to a flag", v, path)
		}
		return err
	}))
}

// TestOtherNamesLeadToFlags checks that each hint for another product's name of a flag names an existing flag.
func TestOtherNamesLeadToFlags(t *testing.T) {
	known := cmdline.Variables(newParser(new(cli)).Model.Node, nil)
	for other, flags := range cmdline.OtherNames {
		for _, flag := range flags {
			require.Contains(t, known, cmdline.VariableOf(flag),
				"the hint of %s must name a flag, not %s", other, flag)
		}
	}
}
