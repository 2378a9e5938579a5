package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// docBlocks returns the fenced blocks of all pages, by the page and the first line.
func docBlocks(t *testing.T) map[string]string {
	t.Helper()
	pages, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	blocks := map[string]string{}
	const laboratory = "../../bench/README.md"
	for _, path := range append(pages, "../../README.md", "../../CONTRIBUTING.md", laboratory) {
		if filepath.Base(path) == "commands.md" {
			continue // made from the command table, whose examples TestExamples of server runs
		}
		page, err := os.ReadFile(path)
		require.NoError(t, err)
		name := filepath.Base(path)
		if path == laboratory {
			name = "bench/" + name
		}
		for i, part := range strings.Split("\n"+string(page), "\n```") {
			if i%2 == 1 {
				_, text, _ := strings.Cut(part, "\n")
				first, _, _ := strings.Cut(text, "\n")
				blocks[name+": "+first] = text
			}
		}
	}
	return blocks
}

// TestDocs runs the commands of the pages as written. A block that is in none of the lists below is an error, until a
// developer has decided about it.
func TestDocs(t *testing.T) {
	blocks := docBlocks(t)
	decided := map[string]bool{}
	decide := func(name string, run func(t *testing.T, text string)) {
		text, ok := blocks[name]
		require.True(t, ok, "a list names a block that no page has: %s", name)
		require.False(t, decided[name], "a block must be in one list only: %s", name)
		decided[name] = true
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, text)
		})
	}
	for name, setup := range docSessions {
		decide(name, func(t *testing.T, text string) { runSession(t, setup, text) })
	}
	for name, script := range docScripts {
		decide(name, func(t *testing.T, text string) { script.run(t, blocks, text) })
	}
	for name, check := range docsChecked {
		decide(name, check)
	}
	for name, why := range docsNotRun {
		decide(name, func(t *testing.T, _ string) { require.NotEmpty(t, why) })
	}
	for name := range blocks {
		assert.True(t, decided[name], "run this block, or say in docsNotRun why not: %q", name)
	}
}

// noKubernetes is the reason why the commands of docs/kubernetes.md are not run here. The module packaging/helm renders
// the chart and runs the commands of its pods: make test-kubernetes.
const noKubernetes = "it takes helm, kubectl and a cluster; run_test.go of packaging/helm does the same with processes"

// docsNotRun lists why blocks are not run here, and the test that covers them if one exists.
var docsNotRun = map[string]string{
	"migrating.md: weir migrate watch --addr redis.example:6379 --for 60s": "it takes a Redis in use; TestWatch of " +
		"internal/cli/migrate watches one",
	"README.md: # before": "Python, with what the reader's program has; TestReadme of " +
		"server/clienttest sends the call",
	"README.md: import redis":                         "TestReadme of server/clienttest",
	"README.md: import { createClient } from 'redis'": "TestReadme of server/clienttest",
	"README.md: import java.util.List;":               "TestReadme of server/clienttest",
	"README.md: package main":                         "TestReadme of server/clienttest",
	"README.md: flowchart LR":                         "a drawing",

	"policies.md: redis-cli -p 6380 RL.POLICY SET budget LIMIT FIXED MONTH 1000000 NOTIFY 50% 80% 100%": "the " +
		"receiver is elsewhere; internal/cli/events delivers to one of its own",
	"policies.md: redis-cli -p 6380 XREAD BLOCK 30000 STREAMS weir:events 0": "it waits; events_test.go of " +
		"server/commands and of client read streams",
	"policies.md: weir events --addr 10.0.0.1:6380,10.0.0.2:6380 --follow --from /var/lib/weir-bills/cursor --batch 1000 --exec '/usr/local/bin/add-bill-lines'": "the " +
		"program is the reader's own; internal/cli/events runs one",

	"http.md: # of a route, in place of rate_limits": "a part of the configuration of Envoy above it",

	"production.md: 17 * * * * weir backup --addr 10.0.0.1:6380 --password-file /etc/weir/password /var/backups/weir-$(date +\\%H).backup": "a line of a crontab; operations.md runs weir backup",

	"bench/README.md: redis-benchmark -p 6380 -c 50 -P 128 -r 100000 -n 5000000 RL.TOKENBUCKET key:__rand_int__ 10 20": "it loads the machine for many seconds; bench sends the same in its TestRedisBenchmark",

	"clustering.md: import Redis from 'ioredis'": "TestNodeExamplesOfReplies of server/clienttest",
	"clustering.md: [{\"id\": \"a\", \"addr\": \"10.0.0.1:6390\"}]": "a file; raftstore's recover_test.go " +
		"writes such ones",
	"clustering.md: weir backup --addr 127.0.0.1:6380 tier.backup": "TestBackupAndRestoreOfGroups of cmd/weir does " +
		"the same with several groups",
	"scaling.md: n1     leads 3 of 16, has 8 of 16  yes  z1":            "output; the block before it founds the cluster",
	"scaling.md: 0      n3    n6  18.9kb  n3 has 16 replicas, n6 has 0": "output; the block before it moves replicas",

	"clustering.md: [+]node ok": "output; TestClusterProcesses of internal/clustertest/chaos and server's " +
		"probes read it",

	"operations.md: log entry 812 is corrupt (00000000000000000001-0000000000000000.wal at offset 48120): checksum " +
		"mismatch, and later entries are whole": "output; TestADamagedNodeRefusesToStart of raftstore reads such a line",

	"operations.md: docker compose -f docker/compose.yaml -f docker/compose.monitoring.yaml up --build --detach": "it takes images from a registry; TestComposeMonitoring of docker reads the files",

	"security.md: # An authority for clients and one for nodes, each with a key of its own.": "TestCertificatesOfTheManual",
	"security.md: # who uses this server":                                                    "TestUsersOfTheManual",
	"security.md: level=INFO msg=audit user=ops addr=10.0.0.7:51724 id=12 command=rl.block args=\"RL.BLOCK user:13 " +
		"1h REASON abuse\" queued=false": "output",

	"installing.md: make build": "the test binary is built so; " +
		"TestVersion reads it",
	"installing.md: sha256sum --check --ignore-missing checksums.txt": "it needs a release; make release-snapshot " +
		"makes such files",
	"installing.md: sudo dpkg -i weir_0.1.0_linux_amd64.deb": "make test-package installs the package and starts " +
		"what the unit starts",
	"installing.md: weir backup before.backup": "make test-package upgrades the package; TestDocs runs the backup " +
		"of operations.md",
	"installing.md: sudo apt-get remove weir": "make test-package removes and purges the package",

	"kubernetes.md: kubectl create secret generic weir --from-literal=password=\"$(openssl rand -hex 32)\" " +
		"--from-literal=cluster=\"$(openssl rand -hex 32)\"": noKubernetes,
	"kubernetes.md: kubectl port-forward pod/weir-0 6380 6381":                                              noKubernetes,
	"kubernetes.md: kubectl create secret generic weir --from-literal=password=\"$(openssl rand -hex 32)\"": noKubernetes,
	"kubernetes.md: printf 'user app on #%s ~app:* +@decide +@connection\\n' \"$(printf %s \"$password\" | " +
		"sha256sum | cut -d ' ' -f 1)\" > users": noKubernetes,
	"kubernetes.md: kubectl create secret generic weir-tls --from-file=tls.crt --from-file=tls.key --from-file=ca.crt": noKubernetes,
	"kubernetes.md: helm upgrade weir packaging/helm/weir --reuse-values --set-file policies.file=policies.yaml":       noKubernetes,
	"kubernetes.md: helm upgrade weir packaging/helm/weir --reuse-values --set " +
		"monitoring.serviceMonitor.enabled=true --set monitoring.serviceMonitor.labels.release=prometheus --set " +
		"monitoring.rules.enabled=true --set monitoring.rules.labels.release=prometheus --set " +
		"monitoring.dashboard.enabled=true": noKubernetes,
	"kubernetes.md: kubectl exec weir-0 -- weir backup - > before.backup": noKubernetes,
	"kubernetes.md: kubectl scale statefulset weir --replicas=4":          noKubernetes,
	"kubernetes.md: kubectl exec weir-0 -- weir backup - > today.backup":  noKubernetes,
	"kubernetes.md: helm install weir2 packaging/helm/weir --set auth.existingSecret=weir --set " +
		"cluster.existingSecret=weir": noKubernetes,
	"kubernetes.md: apiVersion: v1":                                      noKubernetes,
	"kubernetes.md: kubectl attach --stdin weir2-restore < today.backup": noKubernetes,
	"kubernetes.md: kubectl exec weir-0 -- weir cluster remove weir-2":   noKubernetes,
	"kubernetes.md: helm uninstall weir":                                 noKubernetes,
}
