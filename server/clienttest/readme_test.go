package clienttest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// readmeProgram is a program in the README: the language of its code block, its first words, and how to run it.
type readmeProgram struct {
	fence, begins string
	language      string // the entry of languages whose directory has the client; "": this module has it
	file          string
	run           []string
}

var readmePrograms = []readmeProgram{
	{"python", "import redis", "python", "readme.py", []string{"venv/bin/python", "readme.py"}},
	{"js", "import { createClient }", "node", "readme.mjs", []string{"node", "readme.mjs"}},
	{"java", "import java.util.List;", "java", "Limit.java",
		[]string{"java", "-cp", "target/dependency/*", "Limit.java"}},
	{"go", "package main", "", "readme.go", []string{"go", "run", "readme.go"}},
}

// TestReadme runs each program of the README four times, unchanged except for the port. The bucket has two tokens. The
// programs print the remaining tokens, how long to wait after the denial, and that no wait helps.
func TestReadme(t *testing.T) {
	if os.Getenv("WEIRTEST_CLIENTS") == "" {
		t.Skip("SKIPPED: the programs of the README run with WEIRTEST_CLIENTS=1 (make test-clients)")
	}
	page, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	for _, program := range readmePrograms {
		t.Run(program.fence, func(t *testing.T) {
			w := startWeir(t)
			dir, run := program.install(t, program.cut(t, string(page)), w.port())
			var said []string
			for round := range 4 {
				if round == 3 { // a block without end answers -1, as a cost above the limit does
					_, err := w.ask("RL.BLOCK", "user:42", "FOREVER")
					require.NoError(t, err)
				}
				cmd := exec.CommandContext(t.Context(), run[0], run[1:]...)
				cmd.Dir = dir
				out, err := cmd.CombinedOutput()
				require.NoError(t, err, "%s", out)
				said = append(said, strings.TrimSpace(string(out)))
			}
			require.Equal(t, []string{"1 left", "0 left", "denied, retry in 100 ms", "denied, and no wait helps"}, said)
		})
	}
}

// cut returns the program's code block of the page, with a smaller bucket, which denies the third request.
func (p readmeProgram) cut(t *testing.T, page string) string {
	t.Helper()
	for _, block := range strings.Split(page, "\n```"+p.fence+"\n")[1:] {
		if text, _, _ := strings.Cut(block, "\n```"); strings.HasPrefix(text, p.begins) {
			small := strings.NewReplacer(`"10/s", 100`, `"10/s", 2`, `"10/s").add(100)`, `"10/s").add(2)`,
				`'10/s', '100'`, `'10/s', '2'`)
			return small.Replace(text) + "\n"
		}
	}
	t.Fatalf("the page has no block of %s that begins with %s", p.fence, p.begins)
	return ""
}

// install writes the program into the directory of its client. It returns the directory and the command that runs the
// program.
func (p readmeProgram) install(t *testing.T, text, port string) (string, []string) {
	t.Helper()
	require.Contains(t, text, "6380")
	text = strings.ReplaceAll(text, "6380", port)
	if p.language == "" {
		file := filepath.Join(t.TempDir(), p.file)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return ".", []string{"go", "run", file}
	}
	for _, l := range languages {
		if l.name == p.language {
			dir := l.prepare(t)
			require.NoError(t, os.WriteFile(filepath.Join(dir, p.file), []byte(text), 0o600))
			return dir, p.run
		}
	}
	t.Fatalf("no language is called %s", p.language)
	return "", nil
}

// TestNodeExamplesOfReplies runs the program of docs/clustering.md that shows the shapes of replies in Node.
func TestNodeExamplesOfReplies(t *testing.T) {
	if os.Getenv("WEIRTEST_CLIENTS") == "" {
		t.Skip("SKIPPED: the programs of the documents run with WEIRTEST_CLIENTS=1 (make test-clients)")
	}
	page, err := os.ReadFile("../../docs/clustering.md")
	require.NoError(t, err)
	program := readmeProgram{"js", "import Redis from 'ioredis'", "node", "replies.mjs",
		[]string{"node", "replies.mjs"}}
	text := program.cut(t, string(page)) + "process.exit()\n" // its connections stay open
	dir, run := program.install(t, text, startWeir(t).port())
	cmd := exec.CommandContext(t.Context(), run[0], run[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, "9\n9\n9\n", string(out))
}
