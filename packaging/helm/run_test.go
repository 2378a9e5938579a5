package helm

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// deployed installs a release with the values of an example, and waits until its nodes are ready.
func deployed(t *testing.T, file string) *kubelet {
	t.Helper()
	o := install(t, valuesOf(t, file))
	k := newKubelet(t, o, secretsOf(t, o))
	var all []int
	for i := range int(*o.set.Spec.Replicas) {
		k.start(i)
		all = append(all, i)
	}
	k.ready(all...)
	return k
}

// TestOneNodeRuns checks that one node is ready, keeps its state through a restart, and passes helm test.
func TestOneNodeRuns(t *testing.T) {
	k := deployed(t, oneNode)
	require.Equal(t, "1", decide(t, k, 0, nil, "default", password, "RL.FIXED", "k", "1h", "5")[0])
	k.run("test", &k.o.test.Spec)
	k.terminate(0)
	k.start(0)
	k.ready(0)
	require.Equal(t, "3", decide(t, k, 0, nil, "default", password, "RL.FIXED", "k", "1h", "5")[1])
}

// TestThreeNodesRun checks that three nodes share their limits, and that a new node can replace one that is lost.
func TestThreeNodesRun(t *testing.T) {
	k := deployed(t, threeNodes)
	require.Equal(t, "4", decide(t, k, 0, nil, "default", password, "RL.FIXED", "k", "1h", "5")[1])
	require.Regexp(t, `fixed 1h 5 +\d +4 `, k.exec(2, "keys", "look", "k"))
	require.Contains(t, k.run("test", &k.o.test.Spec), "blocked")

	defer func() { k.t = t }()
	t.Run("a node restarts", func(t *testing.T) {
		k.t = t
		for i := range 3 {
			k.terminate(i)
			require.Equal(t, fmt.Sprint(3-i),
				decide(t, k, (i+1)%3, nil, "default", password, "RL.FIXED", "k", "1h", "5")[1])
			k.start(i)
			k.ready(i)
		}
	})
	t.Run("a volume is lost", func(t *testing.T) {
		k.t = t
		pod := podName(k.o, 2)
		k.stop(pod)
		require.NoError(t, os.RemoveAll(filepath.Join(k.dir, pod)))
		k.start(2)
		await(t, k, pod, "the cluster has a node with this id")
		k.exec(0, "cluster", "remove", pod)
		k.ready(2)
		k.await(0, []string{"cluster", "status"}, pod+`~`)
	})
	t.Run("a backup is restored", func(t *testing.T) {
		k.t = t
		backup := filepath.Join(t.TempDir(), "today.backup")
		k.exec(1, "backup", backup)
		restored := newKubelet(t, k.o, k.secrets)
		restored.exec(0, "restore", backup)
		for i := range 3 {
			restored.start(i)
		}
		restored.ready(0, 1, 2)
		require.Regexp(t, `fixed 1h 5 +\d +1 `, restored.exec(2, "keys", "look", "k"))
	})
	t.Run("it grows", func(t *testing.T) {
		k.t = t
		k.o = install(t, with(t, threeNodes, "replicas", 5))
		k.start(3)
		k.start(4)
		k.ready(3, 4)
		k.await(4, []string{"cluster", "status"}, "weir-3 ", "weir-4 ")
		k.nodes[podName(k.o, 0)].signal(syscall.SIGKILL)
		k.await(1, []string{"cluster", "status"})
		k.await(4, []string{"keys", "look", "k"}, `fixed 1h 5 +\d +1 `)
	})
}

// TestThreeNodesWithTLSAndUsersRun checks that a client needs a certificate and a user, and that a command in a pod
// needs neither.
func TestThreeNodesWithTLSAndUsersRun(t *testing.T) {
	k := deployed(t, "weir/examples/three-nodes-tls-users.yaml")
	config := clientTLS(t, k.secrets["weir-tls"])
	require.Equal(t, "1", decide(t, k, 1, config, "app", "of-the-app", "RL.FIXED", "app:k", "1h", "5")[0])
	require.Contains(t, decide(t, k, 1, config, "app", "of-the-app", "RL.FIXED", "other", "1h", "5")[0], "NOPERM")
	require.Regexp(t, `fixed 1h 5 +\d +4 `, k.exec(0, "keys", "look", "app:k"))
	k.run("test", &k.o.test.Spec)
	k.terminate(0)
	require.Equal(t, "3", decide(t, k, 1, config, "app", "of-the-app", "RL.FIXED", "app:k", "1h", "5")[1])

	conn, err := tls.Dial("tcp", k.address(podName(k.o, 1), "6380"), &tls.Config{RootCAs: config.RootCAs})
	if err == nil { // TLS 1.3: the first read reports the rejection
		defer conn.Close()
		_, err = conn.Read(make([]byte, 1))
	}
	require.Error(t, err, "without a certificate nobody is let in")
}

// TestPoliciesRun checks that nodes start with the policies, and that the Job applies changes after an upgrade.
func TestPoliciesRun(t *testing.T) {
	const file = "weir/examples/three-nodes-monitoring-policies.yaml"
	k := deployed(t, file)
	k.await(0, []string{"policy", "export"}, `TOKENBUCKET 100/s 200`)
	k.o = install(t, with(t, file, "policies.file", "policies:\n  api:\n    limits:\n      - TOKENBUCKET 7/s 9\n"))
	require.Contains(t, k.run("policies", &k.o.job.Spec.Template.Spec), "1 changed")
	require.Contains(t, k.exec(2, "policy", "export"), "TOKENBUCKET 7/s 9")
	require.Contains(t, k.exec(2, "policy", "export"), "login:", "policies that the file does not name stay")
}

func await(t *testing.T, k *kubelet, pod, word string) {
	t.Helper()
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(filepath.Join(k.dir, pod+".log"))
		return err == nil && strings.Contains(string(text), word)
	}, patience, restartAfter, "the log of %s never says %q", pod, word)
}

func clientTLS(t *testing.T, secret map[string]string) *tls.Config {
	t.Helper()
	pair, err := tls.X509KeyPair([]byte(secret["tls.crt"]), []byte(secret["tls.key"]))
	require.NoError(t, err)
	authorities := x509.NewCertPool()
	require.True(t, authorities.AppendCertsFromPEM([]byte(secret["ca.crt"])))
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: authorities,
		ServerName: release + "." + namespace + ".svc"}
}

// decide sends one command to the client port of a node, and returns the integers of its reply, or its error. It
// retries commands that were not counted, as clients do after an election.
func decide(t *testing.T, k *kubelet, ordinal int, config *tls.Config, user, pass string,
	args ...string) (reply []string) {
	t.Helper()
	require.Eventually(t, func() bool {
		reply = decideOnce(t, k, ordinal, config, user, pass, args...)
		return !strings.HasPrefix(reply[0], "-TRYAGAIN") && !strings.HasPrefix(reply[0], "-CLUSTERDOWN")
	}, patience, restartAfter, "%v", &reply)
	return reply
}

func decideOnce(t *testing.T, k *kubelet, ordinal int, config *tls.Config, user, pass string, args ...string) []string {
	t.Helper()
	var conn net.Conn
	conn, err := net.Dial("tcp", k.address(podName(k.o, ordinal), "6380"))
	require.NoError(t, err)
	defer conn.Close()
	if config != nil {
		conn = tls.Client(conn, config)
	}
	_, err = fmt.Fprintf(conn, "AUTH %s %s\r\n%s\r\nQUIT\r\n", user, pass, strings.Join(args, " "))
	require.NoError(t, err)
	text, err := io.ReadAll(bufio.NewReader(conn))
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\r\n")
	require.Equal(t, "+OK", lines[0])
	if !strings.HasPrefix(lines[1], "*") {
		return lines[1:]
	}
	reply := lines[2:]
	for i := range reply {
		reply[i] = strings.TrimPrefix(reply[i], ":")
	}
	return reply
}
