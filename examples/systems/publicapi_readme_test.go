package systems

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/weirproc"
)

// answered matches commands of a README, and the output of the last command.
var answered = regexp.MustCompile("(?s)```sh\n([^`]+)```\n\n```(?:http|text)\n([^`]+)```")

// TestPublicAPIReadme runs the commands of the README, and compares their output.
func TestPublicAPIReadme(t *testing.T) {
	for _, tool := range []string{"curl", "redis-cli"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIPPED: %s is missing", tool)
		}
	}
	text, err := os.ReadFile("public-api/README.md")
	require.NoError(t, err)
	weir := weirproc.Start(t, "--test-clock", "--policies", publicAPIPolicies)
	exports := regexp.MustCompile(`RATE_LIMIT_\w+=\w+`).FindAllString(string(text), -1)
	require.Len(t, exports, 7, "all settings of the document")
	api := startPublicAPI(t, weir.Addr, []string{publicAPIBinary(t)}, exports...)
	api.installed(weir.Redis(), "env:per-user")
	passTimeUntil(t, weir.Redis(), 0)
	here := strings.NewReplacer("127.0.0.1:8080", api.addr, "redis-cli -p 6380",
		"redis-cli -p "+weir.Addr[strings.LastIndexByte(weir.Addr, ':')+1:])
	steps := answered.FindAllStringSubmatch(string(text), -1)
	require.Len(t, steps, 5)
	for _, step := range steps {
		lines := strings.Split(strings.TrimSpace(step[1]), "\n")
		var said string
		for _, line := range lines {
			out, err := exec.CommandContext(t.Context(), "sh", "-c", here.Replace(line)).Output()
			require.NoError(t, err, line)
			said = strings.ReplaceAll(string(out), "\r", "")
		}
		for _, want := range strings.Split(strings.TrimSpace(step[2]), "\n") {
			require.Contains(t, strings.ToLower("\n"+said), "\n"+strings.ToLower(want)+"\n", step[1])
		}
	}
}
