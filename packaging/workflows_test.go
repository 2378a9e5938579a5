package packaging_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// workflow has the fields of a workflow that the tests read.
type workflow struct {
	Jobs map[string]struct {
		Uses     string
		Strategy struct{ Matrix map[string][]string }
		Steps    []struct{ Run string }
	}
}

var makeCall = regexp.MustCompile(`\bmake (.+)$`)

// TestWorkflowsCallTargets checks that each workflow calls targets of the Makefile, so that its steps can be run by
// hand.
func TestWorkflowsCallTargets(t *testing.T) {
	files, err := filepath.Glob("../.github/workflows/*.yml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var w workflow
		require.NoError(t, yaml.Unmarshal(text, &w), file)
		for name, job := range w.Jobs {
			if job.Uses != "" {
				require.FileExists(t, filepath.Join("..", job.Uses))
				continue
			}
			calls := 0
			for _, step := range job.Steps {
				for _, call := range makeCall.FindAllStringSubmatch(step.Run, -1) {
					calls++
					for _, line := range expand(call[1], job.Strategy.Matrix["target"]) {
						requireTarget(t, file, name, line)
					}
				}
			}
			require.Positive(t, calls, "%s: job %s calls no target", file, name)
		}
	}
}

// TestEveryPartRuns checks that the workflows call each part of scripts/gate.sh: ci.yml when its paths have changed,
// and nightly.yml always.
func TestEveryPartRuns(t *testing.T) {
	script, err := os.ReadFile("../scripts/gate.sh")
	require.NoError(t, err)
	parts := regexp.MustCompile(`(?m)^(test-\S+) +\d+  \S`).FindAllStringSubmatch(string(script), -1)
	require.NotEmpty(t, parts)
	for _, file := range []string{"ci.yml", "nightly.yml"} {
		text, err := os.ReadFile("../.github/workflows/" + file)
		require.NoError(t, err)
		var w workflow
		require.NoError(t, yaml.Unmarshal(text, &w), file)
		var calls []string
		for _, job := range w.Jobs {
			for _, step := range job.Steps {
				for _, call := range makeCall.FindAllStringSubmatch(step.Run, -1) {
					for _, line := range expand(call[1], job.Strategy.Matrix["target"]) {
						calls = append(calls, strings.TrimPrefix(line, "gate-part PART="))
					}
				}
			}
		}
		for _, part := range parts {
			require.Contains(t, calls, part[1], file)
		}
	}
}

// expand replaces the matrix variable of a line with each target.
func expand(line string, targets []string) (all []string) {
	const hole = "${{ matrix.target }}"
	if !strings.Contains(line, hole) {
		return []string{line}
	}
	for _, target := range targets {
		all = append(all, strings.Replace(line, hole, target, 1))
	}
	return all
}

func requireTarget(t *testing.T, file, job, line string) {
	t.Helper()
	cmd := exec.Command("sh", "-c", "make -n TAG=v0.1.0 "+line)
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "GITHUB_REF_NAME=v0.1.0")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s: job %s: make %s: %s", file, job, line, out)
}

var stamp = regexp.MustCompile(`-X github\.com/weir-project/weir/internal/cli/buildinfo\.(\w+)=`)

// TestStampsAreVariables checks that the variables which the linker sets exist. The linker ignores a missing
// variable, so a release would have no version.
func TestStampsAreVariables(t *testing.T) {
	source, err := os.ReadFile("../internal/cli/buildinfo/buildinfo.go")
	require.NoError(t, err)
	for _, file := range []string{"../.goreleaser.yaml", "../docker/Dockerfile", "../Makefile"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		stamps := stamp.FindAllStringSubmatch(string(text), -1)
		require.NotEmpty(t, stamps, file)
		for _, name := range stamps {
			require.Regexp(t, `(?m)^var .*\b`+name[1]+`\b.* string$`, string(source), "%s: %s", file, name[1])
		}
	}
}
