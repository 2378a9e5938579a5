package helm

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var variable = regexp.MustCompile(`\(\$WEIR_([A-Z_]+)\)`)

// flags returns the flags of weir serve under their names in settings.
func flags(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, m := range variable.FindAllStringSubmatch(weir(t, "serve", "--help"), -1) {
		names = append(names, strings.ReplaceAll(strings.ToLower(m[1]), "_", "-"))
	}
	require.Greater(t, len(names), 30)
	return names
}

// notSettings are the flags that must not be settings, with the reason.
var notSettings = map[string]string{
	"listen": "chart", "http": "chart", "data-dir": "chart", "rls": "chart", "requirepass-file": "chart",
	"users-file": "chart",
	"policies":   "chart", "node-id": "chart", "raft-addr": "chart", "raft-listen": "chart",
	"join": "chart", "advertise": "chart", "zone": "chart",
	"cluster-secret-file": "chart", "raft-tls-cert-file": "chart", "raft-tls-key-file": "chart",
	"raft-tls-ca-file": "chart",
	"tls-listen":       "chart", "tls-cert-file": "chart", "tls-key-file": "chart", "tls-ca-file": "chart",
	"tls-auth-clients": "chart", "rls-tls": "chart",
	"requirepass": "the pod's description would show it", "cluster-secret": "the pod's description would show it",
	"config": "settings are it", "expect": "all nodes found the cluster together",
	"protected-mode": "there is a password",
	"http-tls":       "probes and Prometheus would have to know",
	"unix-socket":    "the pod has one container", "http-socket": "the pod has one container",
	"rls-socket": "the pod has one container", "socket-mode": "the pod has one container",
	"envoy-config": "no volume has such files", "envoy-merge-domains": "of --envoy-config",
	"envoy-fields": "of --envoy-config", "envoy-environment": "no pod of the chart has such variables",
	"envoy-xds": "a control plane is outside of the chart", "envoy-xds-node": "of --envoy-xds",
	"envoy-xds-ca-file": "of --envoy-xds", "envoy-xds-cert-file": "of --envoy-xds",
	"envoy-xds-key-file": "of --envoy-xds", "envoy-xds-server-name": "of --envoy-xds",
	"test-clock": "for tests", "debug-commands": "for tests", "cpu-profile": "the file system is read-only",
}

// TestSettingsAreFlags checks that every flag of weir serve is a setting or has a reason in notSettings.
func TestSettingsAreFlags(t *testing.T) {
	var schema struct {
		Properties struct {
			Settings struct{ Properties map[string]any }
		}
	}
	require.NoError(t, json.Unmarshal(load(t).Schema, &schema))
	want := slices.DeleteFunc(flags(t), func(f string) bool { return notSettings[f] != "" })
	require.ElementsMatch(t, want, slices.Collect(maps.Keys(schema.Properties.Settings.Properties)))
	for name := range notSettings {
		require.Contains(t, flags(t), name)
	}
}

// TestSettingsBecomeVariables checks that weir receives each setting as it was written, also large numbers.
func TestSettingsBecomeVariables(t *testing.T) {
	o := install(t, with(t, oneNode, "settings.max-clients", 2000000.0, "settings.max-memory", "600mb",
		"settings.otlp-every", 12))
	given := map[string]string{}
	for _, v := range o.container().Env {
		given[v.Name] = v.Value
	}
	require.Equal(t, "2000000", given["WEIR_MAX_CLIENTS"])
	require.Equal(t, "600mb", given["WEIR_MAX_MEMORY"])
	require.Equal(t, "12", given["WEIR_OTLP_EVERY"])
	require.Equal(t, "json", given["WEIR_LOG_FORMAT"], "the chart's own stay")
}

// TestTheVariablesOfNodes checks that one node gets no cluster flags, and that all nodes of three get the same.
func TestTheVariablesOfNodes(t *testing.T) {
	one := install(t, valuesOf(t, oneNode))
	require.Nil(t, one.budget)
	require.Nil(t, one.container().Lifecycle)
	for _, v := range one.container().Env {
		for _, of := range []string{"RAFT", "JOIN", "NODE_ID", "CLUSTER", "ADVERTISE", "EXPECT"} {
			require.NotContains(t, v.Name, of)
		}
	}
	three := install(t, valuesOf(t, threeNodes))
	var joins []string
	for i := range *three.set.Spec.Replicas {
		env := environment(three, int(i))
		joins = append(joins, env["WEIR_JOIN"])
		require.Equal(t, env["WEIR_RAFT_ADDR"], strings.Split(env["WEIR_JOIN"], ",")[i],
			"a node is in --join under its own address")
	}
	require.Len(t, strings.Split(joins[0], ","), 3)
	require.Len(t, slices.Compact(joins), 1, "the same on all nodes")
}

// environment returns the variables of the node with an ordinal, as the kubelet sets them.
func environment(o *objects, ordinal int) map[string]string {
	env := map[string]string{}
	for _, v := range o.container().Env {
		switch {
		case v.ValueFrom == nil:
			env[v.Name] = os.Expand(strings.NewReplacer("$(", "${", ")", "}").Replace(v.Value),
				func(n string) string { return env[n] })
		case v.ValueFrom.FieldRef.FieldPath == "metadata.name":
			env[v.Name] = podName(o, ordinal)
		case v.ValueFrom.FieldRef.FieldPath == "metadata.namespace":
			env[v.Name] = namespace
		}
	}
	return env
}
