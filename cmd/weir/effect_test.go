package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryFlagIsRead checks that the program reads every flag of weir serve, so that no flag is accepted without
// effect.
func TestEveryFlagIsRead(t *testing.T) {
	read := make(map[string]bool)
	for _, dir := range []string{".", "../../internal/cli/tracing"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		require.NoError(t, err)
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			file, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
			require.NoError(t, err)
			ast.Inspect(file, func(n ast.Node) bool {
				if of, ok := n.(*ast.SelectorExpr); ok {
					read[of.Sel.Name] = true
				}
				return true
			})
		}
	}
	flags := 0
	for _, field := range reflect.VisibleFields(reflect.TypeFor[serveCmd]()) {
		if help := field.Tag.Get("help"); help != "" && field.Name != "Config" { // BeforeResolve asks kong for Config
			flags++
			require.True(t, read[field.Name], "nothing reads the flag of the field %s", field.Name)
		}
	}
	require.Greater(t, flags, 40)
}
