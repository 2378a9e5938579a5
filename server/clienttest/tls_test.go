package clienttest

import (
	"crypto/tls"
	"net"
	"os/exec"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/certs/certtest"
	"github.com/weir-project/weir/internal/freeport"
)

// startSecure starts a server that requires TLS and client certificates. It returns the host:port of the TLS port, and
// the authority of all certificates.
func startSecure(t *testing.T) (addr string, ca *certtest.CA) {
	t.Helper()
	ca = certtest.NewCA(t, "ca")
	files := ca.Issue("weir", nil)
	addr = freeport.Addr(t) // the server does not report its TLS port
	startWeir(t, "--tls-listen="+addr, "--tls-cert-file="+files.Cert, "--tls-key-file="+files.Key,
		"--tls-ca-file="+ca.File, "--tls-auth-clients=required", "--requirepass="+password)
	return addr, ca
}

func TestRedisCLIOverTLS(t *testing.T) {
	cli := tool(t, "redis-cli", "redis-tools")
	addr, ca := startSecure(t)
	mine := ca.Issue("app", nil)
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	run := func(args ...string) string {
		cmd := exec.CommandContext(
			t.Context(), cli, append([]string{"-p", port, "-a", password, "--no-auth-warning"}, args...)...)
		out, _ := cmd.CombinedOutput() // the test expects success in some cases and failure in others
		return string(out)
	}
	secure := []string{"--tls", "--cacert", ca.File, "--cert", mine.Cert, "--key", mine.Key}
	require.Equal(t, "1\n9\n0\n360000\n10\n", run(append(secure, "RL.TOKENBUCKET", "cli", "10/h", "10")...))
	require.Contains(t, run("--tls", "--cacert", certtest.NewCA(t, "other").File, "PING"), "certificate verify failed")
	require.NotContains(t, run("--tls", "--cacert", ca.File, "PING"), "PONG", "without a certificate")
	require.Contains(t, run("PING"), "this port takes TLS only")
}

func TestGoRedisOverTLS(t *testing.T) {
	addr, ca := startSecure(t)
	mine := ca.Issue("app", nil)
	cert, err := tls.LoadX509KeyPair(mine.Cert, mine.Key)
	require.NoError(t, err)
	client := redis.NewClient(&redis.Options{Addr: addr, Password: password,
		TLSConfig: &tls.Config{RootCAs: ca.Pool(), Certificates: []tls.Certificate{cert},
			MinVersion: tls.VersionTLS12}})
	defer client.Close()
	pipe := client.Pipeline()
	for range 1000 {
		pipe.Do(t.Context(), "RL.TOKENBUCKET", "go", "1/h", "600")
	}
	done, err := pipe.Exec(t.Context())
	require.NoError(t, err)
	admitted := int64(0)
	for _, cmd := range done {
		five, err := cmd.(*redis.Cmd).Int64Slice()
		require.NoError(t, err)
		admitted += five[0]
	}
	require.EqualValues(t, 600, admitted)
}
