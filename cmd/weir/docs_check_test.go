package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/weir-project/weir/policyfile"
)

// docsChecked are blocks whose claims are checked without running them in full.
var docsChecked = map[string]func(t *testing.T, text string){
	"README.md: make run": makes,
	"README.md: docker run --rm -p 127.0.0.1:6380:6380 -p 127.0.0.1:6381:6381 -e WEIR_PROTECTED_MODE=false " +
		"ghcr.io/weir-project/weir": runsInTheImage,
	"README.md: go run github.com/weir-project/weir/cmd/weir@latest serve": runsByGo,

	"README.md: owner: team-a": isPolicyFile,
	"installing.md: docker run --rm -p 127.0.0.1:6380:6380 -p 127.0.0.1:6381:6381 -e WEIR_PROTECTED_MODE=false " +
		"ghcr.io/weir-project/weir": runsInTheImage,
	"installing.md: go install github.com/weir-project/weir/cmd/weir@latest": installsByGo,

	"CONTRIBUTING.md: make build":                                             makes,
	"bench/README.md: make bench":                                             makes,
	"bench/README.md: make bench-guard BASE=HEAD~5":                           makes,
	"bench/README.md: # List the scenarios, and who takes part in each.":      lists,
	"policies.md: owner: team-a":                                              isPolicyFile,
	"policies.md: ok    login.yaml:15: the fifth login of a minute is denied": isPolicyTest("", ""),
	"policies.md: FAIL  login.yaml:15: the fifth login of a minute is denied": isPolicyTest("50s", "40s"),
	"policies.md: name: policies":                                             runsInCI,

	"http.md: rdb := redis.NewUniversalClient(&redis.UniversalOptions{":                                                compiles("", "_ = d"),
	"http.md: all, perChat := client.TokenBucket(client.PerSecond(30), 1), client.TokenBucket(client.PerSecond(1), 1)": compiles("", ""),
	"http.md: hold, d, err := limits.Reserve(ctx, client.Request{Rule: client.Policy(\"tpm\"), Key: \"org:acme\", " +
		"Cost: 4000}, 2*time.Minute)": compiles("", "_, _ = d, left"),
	"http.md: lease, err := limits.Lease(global, \"all\", client.LeaseOptions{Batch: 1000})": compiles(
		"var global *client.Rule", "_ = d"),
	"http.md: proxies, err := httplimit.Trust(\"10.0.0.0/8\") // who is believed about X-Forwarded-For": compiles(
		"var login, api *client.Rule; var addr string; var mux *http.ServeMux", ""),
}

// makes checks that make knows the targets.
func makes(t *testing.T, text string) {
	for line := range strings.Lines(text) {
		require.True(t, strings.HasPrefix(line, "make "), line)
		make := exec.Command("sh", "-c", `make() { command make -n "$@"; }; `+line)
		make.Dir = "../.."
		out, err := make.CombinedOutput()
		require.NoError(t, err, "%s: %s", line, out)
	}
}

// lists checks that weir-bench accepts the flags, and lists its scenarios.
func lists(t *testing.T, text string) {
	bench := filepath.Join(t.TempDir(), "weir-bench")
	build := exec.Command("go", "build", "-o", bench, "../weir-bench")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	built, err := build.CombinedOutput()
	require.NoError(t, err, "%s", built)
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue // a comment
		}
		require.Equal(t, "bin/weir-bench", words[0])
		out, err := exec.Command(bench, append(words[1:], "--list")...).CombinedOutput()
		require.NoError(t, err, "%s: %s", line, out)
	}
}

func isPolicyFile(t *testing.T, text string) {
	_, err := policyfile.Read(strings.NewReader(text), "policies.yaml")
	require.NoError(t, err)
}

// isPolicyTest checks that the block equals the output of the tests of the page's file, with one word changed.
func isPolicyTest(word, other string) func(*testing.T, string) {
	return func(t *testing.T, text string) {
		dir := t.TempDir()
		file := strings.Replace(docBlocks(t)["policies.md: owner: team-a"], "retry_after: "+word,
			"retry_after: "+other, 1)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "login.yaml"), []byte(file), 0o600))
		cmd := exec.Command(binary, "policy", "test", "login.yaml")
		cmd.Dir = dir
		out, _ := cmd.Output()
		require.Contains(t, string(out), text)
	}
}

// runsInCI checks that the commands of a workflow's steps have their effect, on a branch and on main.
func runsInCI(t *testing.T, text string) {
	var workflow struct {
		Jobs map[string]struct{ Steps []struct{ Run string } }
	}
	require.NoError(t, yaml.Unmarshal([]byte(text), &workflow))
	p, dir := start(t), t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "policies"), 0o755))
	file := docBlocks(t)["policies.md: owner: team-a"]
	require.NoError(t, os.WriteFile(filepath.Join(dir, "policies", "team-a.yaml"), []byte(file), 0o600))
	ran := 0
	for _, step := range workflow.Jobs["policies"].Steps {
		if !strings.HasPrefix(step.Run, "weir ") {
			continue
		}
		ran++
		cmd := exec.Command("sh", "-ec", step.Run)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"), "WEIR_ADDR="+p.addr)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", step.Run, out)
	}
	require.Equal(t, 3, ran)
	require.Equal(t, []any{[]byte("login")}, p.do("RL.POLICY", "LIST", "OWNER", "team-a"))
	p.stop()
}

// compiles checks that the lines are Go code, between the given code before and after them.
func compiles(before, after string) func(*testing.T, string) {
	return func(t *testing.T, text string) {
		program := "package main\n"
		for path, word := range map[string]string{
			"context": "context", "net/http": "http", "time": "time", "github.com/redis/go-redis/v9": "redis",
			"github.com/weir-project/weir/client":           "client",
			"github.com/weir-project/weir/client/httplimit": "httplimit",
		} {
			if strings.Contains(before+text, word+".") || word == "context" || word == "client" {
				program += "import " + word + " \"" + path + "\"\n"
			}
		}
		given := "limits *client.Client"
		if strings.Contains(text, "limits, err :=") {
			given = "_ *client.Client"
		}
		program += "func lines(ctx context.Context, " + given + ") {\n" + before + "\n" +
			strings.ReplaceAll(text, "\n...\n", "\n") + "\n" + after + "\n_ = err\n}\n"
		program += "func main() { lines(nil, nil) }\n"
		file := filepath.Join(t.TempDir(), "main.go")
		require.NoError(t, os.WriteFile(file, []byte(program), 0o600))
		out, err := exec.Command("go", "build", "-o", os.DevNull, file).CombinedOutput()
		require.NoError(t, err, "%s\n%s", out, program)
	}
}
