package walls_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tools are the folders whose programs are no part of weir.
var tools = []string{"bench", "examples", "internal/clustertest", "internal/manpage", "internal/mutants", "internal/pages",
	"internal/testrun", "internal/walls", "internal/weirproc", "internal/weirtest"}

// eachFile calls visit with every product file of the module, without its tests.
func eachFile(t *testing.T, visit func(path string, file *ast.File)) {
	t.Helper()
	set := token.NewFileSet()
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (path != root && strings.HasPrefix(d.Name(), ".") || slices.Contains(tools, name)):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err == nil {
			visit(name, file)
		}
		return err
	}))
}

// TestNoStructEmbedsAHost checks that no struct embeds the Host of a process or what a group has of its own there. A
// part that embeds one may touch everything that belongs to a node. It takes small interfaces and values instead.
func TestNoStructEmbedsAHost(t *testing.T) {
	const pkg = "raftstore/internal/host"
	eachFile(t, func(path string, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.StructType)
			if !ok {
				return true
			}
			for _, f := range s.Fields.List {
				text := types.ExprString(f.Type)
				of, name, _ := strings.Cut(strings.TrimPrefix(text, "*"), ".")
				if name == "" && filepath.Dir(path) == pkg {
					of, name = "host", of
				}
				embeds := len(f.Names) == 0 && of == "host" && (name == "Host" || name == "Group")
				assert.False(t, embeds, "%s: a struct embeds %s", path, text)
			}
			return true
		})
	})
}
