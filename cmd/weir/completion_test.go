package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestComplete(t *testing.T) {
	root := newParser(new(cli)).Model.Node
	for _, c := range []struct {
		typed []string
		want  []string
	}{
		{[]string{"d"}, []string{"dialects", "doctor", "demo"}},
		{[]string{"cluster", "ad"}, []string{"add"}},
		{[]string{"cluster", "--addr", "cluster", "ad"}, []string{"add"}},
		{[]string{"cluster", "--tls", "ad"}, []string{"add"}},
		{[]string{"cluster", "status", "--pass"}, []string{"--password-file"}},
		{[]string{"serve", "--http-check", "p"}, []string{"protected"}},
		{[]string{"serve", "--http-check=o"}, []string{"--http-check=off", "--http-check=open"}},
		{[]string{"serve", "--http-check", "=", "o"}, []string{"off", "open"}},
		{[]string{"serve", "--http-check", "="}, []string{"off", "protected", "open"}},
		{[]string{"serve", "--test-d"}, nil},
		{[]string{"serve", "--data-dir", ""}, nil},
		{[]string{"completion", "z"}, []string{"zsh"}},
		{[]string{"__"}, nil},
		{[]string{"serve", "--nonsense", "x", "--listen=1", ""}, nil},
	} {
		require.Equal(t, c.want, complete(root, c.typed), c.typed)
	}
	require.Contains(t, complete(root, nil), "serve")
}

// TestCompletionInShells checks that each shell offers weir's own words during typing.
func TestCompletionInShells(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Symlink(binary, filepath.Join(dir, "weir")))
	for shell, script := range map[string]string{
		"bash": `source <(weir completion bash)
			try() { COMP_WORDS=(weir "$@"); COMP_CWORD=$#; COMPREPLY=(); _weir weir; echo "${COMPREPLY[@]}"; }
			complete -p weir >/dev/null && try clu && try cluster st && try serve --http-check pro && try serve --data-dir x`,
		// compadd prints its arguments.
		"zsh": `compdef() { :; }; _files() { echo; }; source <(weir completion zsh)
			compadd() { shift; echo "$@"; }
			try() { words=(weir "$@"); CURRENT=$(($# + 1)); _weir; }
			try clu; try cluster st; try serve --http-check pro; try serve --data-dir x`,
		"fish": `weir completion fish | source
			for line in "clu" "cluster st" "serve --http-check pro"; complete -C "weir $line" | string split \t -f1; end; echo`,
	} {
		t.Run(shell, func(t *testing.T) {
			path, err := exec.LookPath(shell)
			if err != nil {
				t.Skip("SKIPPED: " + shell + " is missing (on Debian: apt install " + shell + ")")
			}
			cmd := exec.Command(path, "-c", script)
			cmd.Dir = t.TempDir() // no files to offer
			cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "HOME="+dir)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Equal(t, "cluster\nstatus\nprotected\n\n", string(out))
		})
	}
}
