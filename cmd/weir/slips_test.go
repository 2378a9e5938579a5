package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/certs/certtest"
	"github.com/weir-project/weir/internal/freeport"
)

// slip is a mistake in a command line, and weir's answer.
type slip struct {
	what   string // the mistake
	args   string // arguments of weir, separated by spaces; '' is an empty argument
	env    string // one environment variable
	nobody bool   // runs as a user without permissions
	code   int
	says   []string // the wrong argument or file, and what is accepted
}

// loner are arguments of a server that starts and stores nothing.
const loner = "serve --listen=127.0.0.1:0 --http= --data-dir= "

// member are arguments of a node that starts.
const member = "serve --listen=127.0.0.1:0 --http= --node-id=a --data-dir=new "

// slipFiles are the files in the directory where the commands run.
var slipFiles = map[string]string{
	"empty": "", "blank": "\n", "text": "not a backup", "two-lines": "first\nsecond\n", "full/letter": "dear",
	"password": "sesame\n",
	"key.yaml": "lisen: 127.0.0.1:1\n", "underscore.yaml": "max_memory: 1gb\n", "value.yaml": "max-clients: many\n",
	"two-docs.yaml": "- listen\n", "join.yaml": "join: 127.0.0.1:6390\n",
	"rate.yaml":   "policies:\n  a:\n    limits:\n      - TOKENBUCKET 10/q 5\n",
	"indent.yaml": "policies:\n  a:\n  limits:\n    - FIXED 1m 5\n",
	"tab.yaml":    "policies:\n\ta:\n", "field.yaml": "polices: {}\n",
	"algorithm.yaml": "policies:\n  a:\n    limits: [FIXD 1m 5]\n",
	"broken.json":    `{"policies": {"a": {"limits": "FIXED 1m 5"}}}`,
	"users-line":     "usr app on\n", "users-rule": "user app on @decide\n", "users-command": "user app on +rl.chek\n",
	"users-plain": "user app on >secret\n",
}

// TestSlips makes each mistake and checks weir's answer. With -v it prints the table.
func TestSlips(t *testing.T) {
	dir, fill := slipDir(t)
	for _, s := range slices.Concat(slipsOfClusters, slipsOfNames, slipsOfValues, slipsOfFiles, slipsOfCommands) {
		t.Run(s.what, func(t *testing.T) {
			said, code := s.make(t, dir, fill)
			require.Equal(t, s.code, code, said)
			for _, want := range s.says {
				require.Contains(t, said, fill.Replace(want))
			}
			require.NotContains(t, said, "goroutine ", "the answer must not contain a stack trace")
			said = strings.Join(strings.Fields(strings.ReplaceAll(said, dir, "DIR")), " ")
			t.Logf("| %s | %d | %s |", s.what, code, said)
		})
	}
}

// slipDir writes the files, and returns the replacements for placeholders in the commands.
func slipDir(t *testing.T) (dir string, fill *strings.Replacer) {
	dir = t.TempDir()
	for name, text := range slipFiles {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "secret"), []byte("sesame\n"), 0o000))
	require.NoError(t, os.Chmod(filepath.Join(dir, "full"), 0o555))
	taken := freeport.Addr(t)
	p := start(t, "--data-dir=", "--listen="+taken)
	guarded := start(t, "--data-dir=", "--requirepass=sesame")
	ca := certtest.NewCA(t, "ca")
	mine, other := ca.Issue("weir", nil), ca.Issue("other", nil)
	return dir, strings.NewReplacer("{dir}", dir, "{taken}", p.addr, "{guarded}", guarded.addr,
		"{cert}", mine.Cert, "{key}", mine.Key, "{otherkey}", other.Key, "{ca}", ca.File)
}

func (s *slip) make(t *testing.T, dir string, fill *strings.Replacer) (said string, code int) {
	var out bytes.Buffer
	cmd := exec.Command(binary, words(fill.Replace(s.args))...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = &out, &out, dir
	if s.env != "" {
		cmd.Env = append(os.Environ(), s.env)
	}
	if s.nobody && os.Getuid() == 0 { // root may do anything
		for up := dir; up != os.TempDir() && up != "/"; up = filepath.Dir(up) {
			require.NoError(t, os.Chmod(up, 0o755))
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	require.NoError(t, cmd.Start())
	timer := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	_ = cmd.Wait()
	return out.String(), cmd.ProcessState.ExitCode()
}

func words(line string) []string {
	list := strings.Fields(line)
	for i := range list {
		list[i] = strings.ReplaceAll(list[i], "''", "")
	}
	return list
}
