package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/weirtest"
)

// readme contains the instructions in the README of an example.
type readme struct {
	path  string
	start []string // the commands that install and start the example, one a line
	steps []step
	// events is the command that reads the events, or empty.
	events string
}

// step is a list of commands and the answer of the last one.
type step struct {
	commands []string
	answer   string // a status line, the relevant headers, and the body after an empty line
}

// redisCLI and curl begin the commands of steps. Other commands start servers: weir and the server behind a proxy,
// which the test has started already, and the example.
const (
	redisCLI = "redis-cli -p 6380 "
	curl     = "curl -i "
	weirCLI  = "weir serve"
	eventCLI = "weir events "
	backend  = "python3 -m http.server --bind 127.0.0.1 --protocol HTTP/1.1 3000"
)

// readmeOf reads the README of an example.
func readmeOf(t *testing.T, example string) *readme {
	t.Helper()
	r := &readme{path: filepath.Join(example, "README.md")}
	text, err := os.ReadFile(r.path)
	require.NoError(t, err)
	for i, part := range strings.Split(string(text), "\n```") {
		if i%2 == 0 {
			continue
		}
		language, block, _ := strings.Cut(part, "\n")
		switch language {
		case "sh":
			r.add(t, strings.Split(block, "\n"))
		case "http":
			last := len(r.steps) - 1
			require.True(t, last >= 0 && r.steps[last].answer == "", "%s: an answer to nothing: %s", r.path, block)
			r.steps[last].answer = block
		default:
			t.Fatalf("%s: a block of %q, which nothing checks", r.path, language)
		}
	}
	require.NotEmpty(t, r.start, "%s does not say how to start the example", r.path)
	return r
}

func (r *readme) add(t *testing.T, commands []string) {
	t.Helper()
	switch first := commands[0]; {
	case strings.HasPrefix(first, redisCLI), strings.HasPrefix(first, curl):
		r.steps = append(r.steps, step{commands: commands})
	case strings.HasPrefix(first, eventCLI):
		r.events = first
	case strings.HasPrefix(first, weirCLI), first == backend:
	default:
		require.Empty(t, r.start, "%s: two blocks that start the example", r.path)
		r.start = commands
	}
}

// follow executes the README's steps against an example that listens on addr and uses s, and compares the answers
// with the README. The test clock makes each answer exact.
func (r *readme) follow(t *testing.T, s *weirtest.Server, addr string) {
	t.Helper()
	need(t, "on Debian: apt install curl", "curl")
	statuses := map[string]bool{}
	for _, step := range r.steps {
		var said string
		for _, command := range step.commands {
			said = r.send(t, s, addr, command)
		}
		if step.answer == "" {
			continue
		}
		// A client that caches a denial needs some seconds to notice another limit.
		want, _, _ := strings.Cut(step.answer, "\n")
		last := step.commands[len(step.commands)-1]
		for patience := time.Now().Add(weirtest.Wait); !strings.HasPrefix(said, want) && time.Now().Before(patience); {
			time.Sleep(20 * time.Millisecond)
			said = r.send(t, s, addr, last)
		}
		statuses[r.same(t, step, said)] = true
	}
	require.Equal(t, map[string]bool{"200": true, "429": true}, statuses,
		"%s shows a request that passes and one that is denied", r.path)
}

// send executes a command and returns its output.
func (r *readme) send(t *testing.T, s *weirtest.Server, addr, command string) string {
	t.Helper()
	if words, ok := strings.CutPrefix(command, redisCLI); ok {
		var args []any
		for _, word := range strings.Fields(words) {
			args = append(args, word)
		}
		require.NoError(t, s.Redis().Do(t.Context(), args...).Err(), "%s: %s", r.path, command)
		return ""
	}
	require.True(t, strings.HasPrefix(command, curl), "%s: %s", r.path, command)
	require.Contains(t, command, listenAddr, "%s: %s", r.path, command)
	quiet := strings.Replace(command, curl, curl+"--silent --show-error ", 1)
	out, err := exec.CommandContext(
		t.Context(), "sh", "-c", strings.ReplaceAll(quiet, listenAddr, addr)).CombinedOutput()
	require.NoError(t, err, "%s: %s: %s", r.path, command, out)
	return string(out)
}

// same compares an answer with the README, and returns its status.
func (r *readme) same(t *testing.T, step step, said string) (status string) {
	t.Helper()
	about := strings.Join(append([]string{r.path + ":"}, step.commands...), "\n") + "\nanswers\n" + said
	want, wantBody, _ := strings.Cut(step.answer+"\n", "\n\n")
	got, gotBody, _ := strings.Cut(strings.ReplaceAll(said, "\r", ""), "\n\n")
	if wantBody != "" {
		require.Equal(t, strings.TrimSpace(wantBody), strings.TrimSpace(gotBody), about)
	}
	wantLines, gotLines := strings.Split(strings.TrimSpace(want), "\n"), strings.Split(got, "\n")
	require.Equal(t, wantLines[0], strings.TrimSpace(gotLines[0]), about)
	for _, line := range wantLines[1:] {
		require.True(t, slices.ContainsFunc(gotLines[1:], func(l string) bool { return strings.EqualFold(l, line) }),
			"no header is %q: %s", line, about)
	}
	return strings.Fields(gotLines[0])[1]
}

// TestIndex checks that the index names each example, and that each example has a README with steps. The directories
// of systems have their own tests.
func TestIndex(t *testing.T) {
	index, err := os.ReadFile("README.md")
	require.NoError(t, err)
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	for _, entry := range entries {
		if !entry.IsDir() || entry.Name() == "systems" {
			continue
		}
		require.Contains(t, string(index), "]("+entry.Name()+")")
		require.NotEmpty(t, readmeOf(t, entry.Name()).steps, entry.Name())
	}
}
