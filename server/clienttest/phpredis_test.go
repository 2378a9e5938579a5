package clienttest

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPhpredis checks database 1 and the Sentinel mode of phpredis, Debian's release. It calls every command once. Then
// its cluster mode runs in a tier.
func TestPhpredis(t *testing.T) {
	if os.Getenv("WEIRTEST_CLIENTS") == "" {
		t.Skip("SKIPPED: clients of other languages run with WEIRTEST_CLIENTS=1 (make test-clients)")
	}
	t.Parallel()
	php := language{name: "php", tools: []string{"apt-get", "dpkg"}, install: [][]string{{"sh", "install.sh"}},
		cluster: []string{"./php", "cluster.php"}}
	dir, w := php.prepare(t), startWeir(t)
	_, err := w.ask("SET", "k", "of zero")
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), dir+"/php", "speak.php", "127.0.0.1", w.port())
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, []string{
		"true", `["127.0.0.1",` + w.port() + "]", `"mymaster"`, "true",
		"true", "true", "[1,5,2]", `["of one",60,true,"of zero",true]`,
		"[1,2,0,60000,3]", "false", `"ERR DB index is out of range: index must be 0 to 15"`,
		"false", "true", "true", "true", `"of zero"`,
	}, strings.Split(strings.TrimSpace(string(out)), "\n"))
	// RedisCluster::rawCommand follows no redirect.
	testTierWith(t, php.inCluster(dir, clientKind{name: "phpredis-cluster"}), "forward")
}
