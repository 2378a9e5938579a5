package engine_test

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/weir-project/weir"

// goList runs go list in the root of the module and returns the words that it prints.
func goList(t *testing.T, args ...string) []string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-pgo=off"}, args...)...)
	cmd.Dir = ".."
	out, err := cmd.Output()
	require.NoError(t, err)
	return strings.Fields(string(out))
}

// typeCheck parses and type-checks a package without its tests.
func typeCheck(t *testing.T, room string) *floatRules {
	r := newFloatRules()
	for _, name := range goList(t, "-f", `{{join .GoFiles "\n"}}`, "./"+room) {
		r.parse(t, filepath.Join("..", room, name), nil)
	}
	r.check(t, "./"+room)
	return r
}

func newFloatRules() *floatRules {
	return &floatRules{fset: token.NewFileSet(), Info: types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{},
		Defs: map[*ast.Ident]types.Object{},
	}}
}

func (r *floatRules) parse(t *testing.T, name string, source any) {
	file, err := parser.ParseFile(r.fset, name, source, parser.SkipObjectResolution)
	require.NoError(t, err)
	r.files = append(r.files, file)
}

// check computes the types of the parsed files. They may only import packages that the given packages import.
func (r *floatRules) check(t *testing.T, packages ...string) {
	exports := make(map[string]string)
	for _, line := range goList(
		t, append([]string{"-export", "-deps", "-f", "{{.ImportPath}}={{.Export}}"}, packages...)...) {
		path, file, _ := strings.Cut(line, "=")
		exports[path] = file
	}
	open := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	config := types.Config{Importer: importer.ForCompiler(r.fset, "gc", open)}
	_, err := config.Check("checked", r.fset, r.files, &r.Info)
	require.NoError(t, err)
}
