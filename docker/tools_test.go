package docker_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// standIns are scripts in place of the programs that scripts/docker-tools.sh looks for and calls. Its apt-get
// installs nothing and prints its arguments.
var standIns = map[string]string{
	"docker":          `[ "$1" = version ]`, // an engine answers, and compose is missing
	"docker, dead":    `exit 1`,
	"docker, compose": `[ "$1" = compose ]`,
	"dockerd":         `exit 0`,
	"docker-compose":  `exit 0`,
	"apt-get":         `[ "$1" = update ] || echo "apt-get $*"`,
	"apt-cache":       `exit 1`,
	"id":              `echo 0`,
	"id, no root":     `echo 1000`,
}

// TestToolsAreInstalledPieceByPiece checks that the script installs each tool separately, and names a tool that stays
// missing.
func TestToolsAreInstalledPieceByPiece(t *testing.T) {
	shell, err := exec.LookPath("sh")
	require.NoError(t, err)
	const (
		noClient = "Docker's client is missing: the tests that need it are skipped (on Debian: apt install " +
			"docker.io)\n"
		noEngine = "Docker's engine is missing: the tests that need it are skipped (on Debian: apt install " +
			"docker.io iptables)\n"
		noCompose = "Docker's compose is missing: the tests that need it are skipped (on Debian: apt install " +
			"docker-compose)\n"
	)
	installs := func(packages string) string {
		return "installing " + packages + "\napt-get install -y -qq --no-install-recommends " + packages + "\n"
	}
	for name, c := range map[string]struct {
		here []string
		says string
	}{
		"all is here":        {[]string{"docker", "docker-compose", "apt-get", "id"}, ""},
		"compose is missing": {[]string{"docker", "apt-get", "id"}, installs("docker-compose") + noCompose},
		"engine is missing":  {[]string{"docker, compose", "apt-get", "id"}, installs("docker.io iptables") + noEngine},
		"engine is to start": {[]string{"docker, dead", "dockerd", "docker-compose", "apt-get", "id"}, ""},
		"client is missing": {[]string{"dockerd", "docker-compose", "apt-get", "id"},
			installs("docker.io") + noClient},
		"nobody may install": {[]string{"docker", "apt-get", "id, no root"}, noCompose},
		"not Debian":         {[]string{"docker", "id"}, noCompose},
	} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir()
			for _, program := range append(c.here, "apt-cache") {
				file, _, _ := strings.Cut(program, ", ")
				require.NoError(t, os.WriteFile(
					filepath.Join(path, file), []byte("#!"+shell+"\n"+standIns[program]+"\n"), 0o700))
			}
			cmd := exec.Command(shell, "../scripts/docker-tools.sh")
			cmd.Env = []string{"PATH=" + path}
			said, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", said)
			require.Equal(t, c.says, string(said))
		})
	}
}
