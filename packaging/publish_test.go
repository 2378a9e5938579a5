package packaging_test

import (
	"archive/zip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// release is the version that the tests publish.
var release = struct{ Path, Version string }{"github.com/weir-project/weir", "v0.1.0"}

// maxModuleBytes bounds the compressed module, because everyone who imports the client downloads it. The bound is far
// above the size of the sources, and far below that of a program committed by mistake.
const maxModuleBytes = 4 << 20

// sources returns the existing files of the module that Git tracks or would add. Directories with a go.mod are other
// modules.
func sources(t *testing.T) (files []string) {
	t.Helper()
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = ".."
	out, err := list.Output()
	if err != nil {
		t.Skipf("SKIPPED: the module is made of what Git has, and this is no clone: %v", err)
	}
	all := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	return slices.DeleteFunc(all, func(name string) bool {
		info, err := os.Lstat(filepath.Join("..", name))
		return err != nil || !info.Mode().IsRegular() || slices.ContainsFunc(all, func(other string) bool {
			dir, isModule := strings.CutSuffix(other, "go.mod")
			return isModule && dir != "" && strings.HasPrefix(name, dir)
		})
	})
}

// publish writes a release in the file layout of a module proxy, and returns the files' path without extension:
// PROXY/MODULE/@v/VERSION.
func publish(t *testing.T) (files string) {
	t.Helper()
	files = filepath.Join(t.TempDir(), release.Path, "@v", release.Version)
	require.NoError(t, os.MkdirAll(filepath.Dir(files), 0o755))
	archive, err := os.Create(files + ".zip")
	require.NoError(t, err)
	packed := zip.NewWriter(archive)
	for _, name := range sources(t) {
		text, err := os.ReadFile(filepath.Join("..", name))
		require.NoError(t, err)
		file, err := packed.Create(release.Path + "@" + release.Version + "/" + name)
		require.NoError(t, err)
		_, err = file.Write(text)
		require.NoError(t, err)
	}
	require.NoError(t, packed.Close())
	require.NoError(t, archive.Close())
	requirements, err := os.ReadFile("../go.mod")
	require.NoError(t, err)
	for name, text := range map[string]string{
		files + ".mod":  string(requirements),
		files + ".info": `{"Version":"` + release.Version + `"}`,
		filepath.Join(filepath.Dir(files), "list"): release.Version + "\n",
	} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	return files
}

// output runs a command with additional variables, and returns its standard output.
func output(t *testing.T, dir string, env []string, argv ...string) string {
	t.Helper()
	var failed strings.Builder
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), env...), &failed
	out, err := cmd.Output()
	require.NoError(t, err, "%q: %s", argv, failed.String())
	return string(out)
}
