package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// published matches the argument -p of "docker run", which publishes a port of a container.
var published = regexp.MustCompile(`^127\.0\.0\.1:(\d+):(\d+)$`)

// runsInTheImage starts weir with the variables of a "docker run" command and of the Dockerfile, on free ports. It
// needs no container engine.
func runsInTheImage(t *testing.T, text string) {
	words := strings.Fields(text)
	require.Equal(t, []string{"docker", "run", "--rm"}, words[:3])
	require.Equal(t, "ghcr.io/weir-project/weir", words[len(words)-1])
	env := map[string]string{}
	dockerfile, err := os.ReadFile("../../docker/Dockerfile")
	require.NoError(t, err)
	for _, line := range regexp.MustCompile(`(?m)^ENV (.+)$`).FindAllStringSubmatch(string(dockerfile), -1) {
		for _, word := range strings.Fields(line[1]) {
			name, value, _ := strings.Cut(word, "=")
			env[name] = value
		}
	}
	for i := 3; i < len(words)-1; i += 2 {
		switch name, value, _ := strings.Cut(words[i+1], "="); words[i] {
		case "-e":
			env[name] = value
		case "-p":
			ports := published.FindStringSubmatch(words[i+1])
			require.NotNil(t, ports, "%s must publish the port to this machine only", words[i+1])
			require.Equal(t, ports[1], ports[2], words[i+1])
			require.Contains(t, []string{env["WEIR_LISTEN"], env["WEIR_HTTP"]}, ":"+ports[2],
				"the image must listen on the published port")
		default:
			t.Fatalf("this test does not know the argument %s", words[i])
		}
	}
	env["WEIR_DATA_DIR"] = t.TempDir()
	cmd := exec.Command(binary)
	cmd.Env = os.Environ()
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	p := startCommand(t, cmd, "--listen=:0", "--http=:0") // beyond this machine, as the image does
	require.EqualValues(t, 1, p.five("RL.TOKENBUCKET", "user:42", "10/s", 100)[0])
}

// runsByGo checks that Go finds the program at this path of this module.
func runsByGo(t *testing.T, text string) {
	words := strings.Fields(text)
	require.Equal(t, []string{"go", "run"}, words[:2])
	isProgram(t, words[2])
	require.Equal(t, []string{"serve"}, words[3:])
}

func installsByGo(t *testing.T, text string) {
	words := strings.Fields(text)
	require.Equal(t, []string{"go", "install"}, words[:2])
	isProgram(t, words[2])
}

func isProgram(t *testing.T, at string) {
	path, version, _ := strings.Cut(at, "@")
	require.Equal(t, "latest", version)
	out, err := exec.Command("go", "list", "-f", "{{.Name}}", path).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, "main", strings.TrimSpace(string(out)))
}
