package clienttest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// testNames returns the names of the tests of a package, and the names of their steps: "Test/step" for each step whose
// name is a string literal.
func testNames(t *testing.T, dir string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	inspect(t, dir, func(in string, call *ast.CallExpr) {
		names[in] = true
		if f, ok := call.Fun.(*ast.SelectorExpr); ok && strings.EqualFold(f.Sel.Name, "run") && len(call.Args) == 2 {
			names[in+"/"+literal(call.Args[0])] = true
		}
	})
	return names
}

// inspect visits all calls in the test files of a package. in is the name of the function that contains the call.
func inspect(t *testing.T, dir string, visit func(in string, call *ast.CallExpr)) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	require.NoError(t, err)
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range file.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					visit(fn.Name.Name, call)
				}
				return true
			})
		}
	}
}

// literal returns the text of a string literal, or "" for any other expression.
func literal(e ast.Expr) string {
	if l, ok := e.(*ast.BasicLit); ok {
		return strings.Trim(l.Value, `"`)
	}
	return ""
}
