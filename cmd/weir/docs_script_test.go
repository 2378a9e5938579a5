package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// docScript is a block of shell commands and its environment. The commands run in separate namespaces, with their own
// ports, 10.0.0.1 to 10.0.0.4, /etc and /var/lib. All processes end with the block.
type docScript struct {
	uses   string // a block to run first, available as $text
	before string
	after  string
}

var docScripts = map[string]docScript{
	"README.md: make run-cluster": {
		before: `make() { exec weir demo > demo; }`,
		after:  `await sh -c 'weir cluster status --addr 127.0.0.1:6384 | tr "\n" " " | grep "yes .*yes .*yes"'; await grep Ctrl-C demo; kill $!; wait $!`,
	},
	"clustering.md: make run-cluster GROUPS=4 CLUSTER_DIR=weir-data-groups": {
		before: `make() { export WEIR_GROUPS=4; exec weir demo > demo; }`,
		after:  `await sh -c 'weir cluster status --addr 127.0.0.1:6384 | grep "^keys *led by"'; await grep Ctrl-C demo; kill $!; wait $!`,
	},
	"operations.md: listen: 0.0.0.0:6380": {
		before: `mkdir /etc/weir; echo secret > /etc/weir/password; cat > /etc/weir/weir.yaml <<'END'`,
		after:  "END\nweir serve --config /etc/weir/weir.yaml & await weir healthcheck; ls /var/lib/weir | grep .",
	},
	"operations.md: weir doctor": {
		uses:   "operations.md: listen: 0.0.0.0:6380",
		before: `mkdir /etc/weir; echo secret > /etc/weir/password; printf %s "$text" > /etc/weir/weir.yaml`,
	},
	"operations.md: weir backup --addr 127.0.0.1:6380 --password-file password today.backup": {
		before: `echo secret > password; weir serve --requirepass-file password & await weir healthcheck
			weir keys block user:42 --for 1h --password-file password`,
		after: `kill $!; wait $!; weir serve --data-dir /var/lib/weir-new & await weir healthcheck
			redis-cli -p 6380 RL.FIXED user:42 1m 5 | head -n 1 | grep -x 0`,
	},
	"operations.md: weir serve --data-dir /var/lib/weir-new": {after: `await weir healthcheck`},
	"operations.md: weir top --once": {
		before: `weir serve & await weir healthcheck; redis-cli -p 6380 RL.FIXED user:42 1m 5`,
		after:  `weir keys list 'user:*' > left; test ! -s left || ! grep user:42 left`,
	},
	"README.md: weir policy test login.yaml": {
		uses:   "README.md: owner: team-a",
		before: `printf %s "$text" > login.yaml; weir serve & await weir healthcheck; weir() { command weir "$@" || [ "$*:$?" = "policy diff -f login.yaml:1" ]; }`,
		after:  `redis-cli -p 6380 RL.CHECK login alice | sed -n 2p | grep -x 4; weir policy diff -f login.yaml`,
	},
	"policies.md: weir policy test login.yaml": {
		uses:   "policies.md: owner: team-a",
		before: `printf %s "$text" > login.yaml`,
	},
	"policies.md: weir policy test docs/examples/*.yaml": {before: `cd "$repo"`},
	"policies.md: weir policy apply -f login.yaml --dry-run": {
		uses:   "policies.md: owner: team-a",
		before: `printf %s "$text" > login.yaml; weir serve & await weir healthcheck`,
		after:  `redis-cli -p 6380 RL.POLICY GET login | grep -x team-a`,
	},
	"policies.md: printf 'owner: team-a\\npolicies: {login: {limits: [FIXED 1m 5]}}\\n' > a.yaml": {
		before: `weir serve & await weir healthcheck`,
		after:  `test "$(redis-cli -p 6380 RL.POLICY LIST | tr '\n' ' ')" = "login search "`,
	},
	"policies.md: weir policy export --owner team-a > before.yaml": {
		uses: "policies.md: owner: team-a",
		before: `printf %s "$text" > login.yaml; weir serve & await weir healthcheck
			redis-cli -p 6380 RL.POLICY SET old LIMIT FIXED 1m 5 OWNER team-a`,
		after: `redis-cli -p 6380 RL.POLICY LIST | grep -x old; weir policy diff -f before.yaml`,
	},
	"policies.md: files: [a.yaml, b.yaml]": {
		uses:   "policies.md: printf 'owner: team-a\\npolicies: {login: {limits: [FIXED 1m 5]}}\\n' > a.yaml",
		before: `weir serve & await weir healthcheck; eval "$text"; cat > tests.yaml <<'END'`,
		after:  "END\nweir policy test tests.yaml",
	},
	"security.md: redis-cli -p 6380 RL.BLOCK ip:192.0.2.66 1h EVERYWHERE REASON 'guesses passwords'": {
		before: `weir serve & await weir healthcheck`,
		after: `redis-cli -p 6380 RL.FIXED 'login|ip:192.0.2.66' 1m 5 | head -n 1 | grep -x 1
			redis-cli -p 6380 RL.FIXED 'login|ip:2001:db8:0:7::/64' 1m 5 | head -n 1 | grep -x 0`,
	},
	"scaling.md: make run-cluster NODES=6 GROUPS=16 REPLICAS=3": {
		before: `make() { exec sh "$repo/scripts/run-cluster.sh" weir 6 16 3 6380 nodes > started; }`,
		after: `await grep Ctrl-C started; await sh -c 'weir cluster status --addr 127.0.0.1:6390 | grep "n6 .*has 8 of 16 .*yes .*z3"'
			await sh -c 'weir cluster plan | grep "nothing to move"'; kill $!; wait $!`,
	},
	"scaling.md: weir serve --node-id n1 --zone z1 --listen 10.0.0.1:6380 --requirepass-file pass --raft-addr 10.0.0.1:6390 \\": {
		before: `for n in 5 6; do ip addr add 10.0.0.$n/24 dev lo; done; echo s > pass; echo s > secret`,
		after: `for n in 2:2 3:3 4:1 5:2 6:3; do
			weir serve --node-id n${n%:*} --zone z${n#*:} --listen 10.0.0.${n%:*}:6380 --http "" --data-dir n${n%:*} --requirepass-file pass \
				--raft-addr 10.0.0.${n%:*}:6390 --expect 6 --groups 16 --replicas 3 --cluster-secret-file secret \
				--join 10.0.0.1:6390,10.0.0.2:6390,10.0.0.3:6390,10.0.0.4:6390,10.0.0.5:6390,10.0.0.6:6390 &
			done; await sh -c 'weir cluster status --addr 10.0.0.6:6380 --password-file pass | grep "n1 .*has 8 of 16 .*yes .*z1"'`,
	},
	"scaling.md: weir cluster plan": {
		before: `sh "$repo/scripts/run-cluster.sh" weir 3 4 3 6380 nodes > first & await grep Ctrl-C first; kill $!; wait $! || :
			sh "$repo/scripts/run-cluster.sh" weir 6 4 3 6380 nodes > second & nodes=$!; await grep Ctrl-C second
			await sh -c 'weir cluster status | grep "n6 .*yes"'
			weir() { [ "$2" = apply ] && await command weir "$@" || command weir "$@"; }`,
		after: `weir cluster status | grep "n6 .*has [12] of 4"; kill $nodes; wait $nodes`,
	},
	"scaling.md: weir cluster plan --drain n2": {
		before: `sh "$repo/scripts/run-cluster.sh" weir 6 4 3 6380 nodes > started & await grep Ctrl-C started
			await sh -c 'weir cluster plan | grep "nothing to move"'`,
		after: `await sh -c 'weir cluster status | grep "n2 .*no replicas"'; kill $!; wait $!`,
	},
	"clustering.md: weir serve --node-id a --listen 10.0.0.1:6380 --requirepass-file pass --raft-addr 10.0.0.1:6390 \\": {
		before: `echo s > pass; echo s > secret`,
		after: `for n in b:2 c:3; do
			weir serve --node-id ${n%:*} --listen 10.0.0.${n#*:}:6380 --http "" --data-dir ${n%:*} --requirepass-file pass --raft-addr 10.0.0.${n#*:}:6390 \
				--join 10.0.0.1:6390,10.0.0.2:6390,10.0.0.3:6390 --expect 3 --cluster-secret-file secret &
			done; await weir cluster status --addr 10.0.0.3:6380 --password-file pass`,
	},
	"clustering.md: weir serve --data-dir weir-new --node-id n1 --raft-addr 127.0.0.1:6390": {
		uses: "clustering.md: weir backup --addr 127.0.0.1:6380 tier.backup",
		before: `weir serve & await weir healthcheck; redis-cli -p 6380 RL.BLOCK user:42 1h
			eval "$text"; kill $!; wait $!`,
		after: `await weir cluster status
			await sh -c 'redis-cli -p 6380 RL.FIXED user:42 1m 1000000 | head -n 1 | grep -x 0'`,
	},
	"clustering.md: weir serve --data-dir weir-n2 --node-id n2 --raft-addr 127.0.0.1:6391 --join 127.0.0.1:6390 " +
		"--listen 127.0.0.1:6382 --http 127.0.0.1:6383": {
		before: `weir serve --node-id n1 --raft-addr 127.0.0.1:6390 --join 127.0.0.1:6390 & await weir cluster status`,
		after:  `await sh -c 'weir cluster status --addr 127.0.0.1:6382 | grep "n2 *follower *yes"'`,
	},
	"clustering.md: weir cluster status": {
		before: `for n in a:1 b:2 c:3; do
			weir serve --node-id ${n%:*} --listen 127.0.0.${n#*:}:6380 --http "" --data-dir ${n%:*} --raft-addr 127.0.0.${n#*:}:6390 \
				--join 127.0.0.1:6390,127.0.0.2:6390,127.0.0.3:6390 &
			done; await weir cluster status; await redis-cli -p 6380 -e RL.FIXED k 1m 5`,
		after: `weir cluster status | grep -q 'b .*leads 1 of 1'`,
	},
	"security.md: weir serve --tls-listen 0.0.0.0:6380 --listen \"\" --tls-cert-file weir.pem --tls-key-file " +
		"weir.key --requirepass-file pass": {
		uses: "security.md: # An authority for clients and one for nodes, each with a key of its own.",
		before: `eval "$text"; echo secret > pass
			cli=$(command -v redis-cli) PATH=.:$PATH
			printf '#!/bin/sh\nuntil weir healthcheck; do sleep 0.1; done\nprintf "secret\\nPING\\n" | %s "$@" > said\n' "$cli" > redis-cli
			chmod +x redis-cli`,
		after: `grep PONG said`,
	},
	"security.md: weir serve --node-id a --raft-addr 10.0.0.1:6390 --join 10.0.0.1:6390,10.0.0.2:6390,10.0.0.3:6390 \\": {
		uses:   "security.md: # An authority for clients and one for nodes, each with a key of its own.",
		before: `eval "$text"`,
		after: `for n in b:2 c:3; do
			weir serve --node-id ${n%:*} --listen 127.0.0.${n#*:}:6380 --http "" --data-dir ${n%:*} --raft-addr 10.0.0.${n#*:}:6390 \
				--join 10.0.0.1:6390,10.0.0.2:6390,10.0.0.3:6390 \
				--raft-tls-cert-file ${n%:*}.pem --raft-tls-key-file ${n%:*}.key --raft-tls-ca-file nodes-ca.pem &
			done; await weir cluster status; await redis-cli -p 6380 -e RL.FIXED k 1m 5`,
	},
}

// docPrelude sets up the environment of a script.
const docPrelude = `set -e
ip link set lo up
for n in 1 2 3 4; do ip addr add 10.0.0.$n/24 dev lo; done
cp -r /etc/ssl ssl
mount -t tmpfs none /etc
mount -t tmpfs none /var/lib
cp -r ssl /etc
# await COMMAND: until it succeeds, for a minute.
await() {
	tries=0
	until "$@" > awaited 2>&1; do
		tries=$((tries + 1))
		[ $tries -lt 600 ] || { cat awaited; exit 1; }
		sleep 0.1
	done
}
`

// alone are the flags of unshare for separate network, mount and process namespaces.
var alone = []string{"--map-root-user", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"}

// serving matches a command that does not end by itself, over all its lines.
var serving = regexp.MustCompile(`(?m)^((?:weir serve|make run)(?:[^#\n\\]|\\\n)*[^#\s])`)

func (s docScript) run(t *testing.T, blocks map[string]string, text string) {
	for _, tool := range []string{"unshare", "ip", "openssl", "redis-cli"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIPPED: %s is missing (on Debian: apt install util-linux iproute2 openssl redis-tools)", tool)
		}
	}
	if out, err := exec.Command("unshare", append(alone, "true")...).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: no namespaces here: %s", out)
	}
	repo, err := filepath.Abs("../..")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	shell := exec.CommandContext(ctx, "unshare", append(alone, "sh")...)
	shell.Dir = t.TempDir()
	shell.Env = append(os.Environ(), "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"), "repo="+repo,
		"text="+blocks[s.uses])
	shell.Stdin = strings.NewReader(docPrelude + s.before + "\n" + serving.ReplaceAllString(text, "$1 &") +
		"\n" + s.after + "\n")
	var said bytes.Buffer
	shell.Stdout, shell.Stderr = &said, &said
	require.NoError(t, shell.Run(), "%s", &said)
}
