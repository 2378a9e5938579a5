package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// selected returns the names behind a dot in the programs below some directories: of what they read or set, for
// example.
func selected(t *testing.T, dirs ...string) map[string]bool {
	names := make(map[string]bool)
	for _, dir := range dirs {
		require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			file, err := parser.ParseFile(token.NewFileSet(), path, text, 0)
			require.NoError(t, err)
			ast.Inspect(file, func(n ast.Node) bool {
				if of, ok := n.(*ast.SelectorExpr); ok {
					names[of.Sel.Name] = true
				}
				return true
			})
			return nil
		}))
	}
	return names
}

// TestEveryFlagIsRead checks that the program reads every flag and argument of every command, so that none is accepted
// without effect. A variable and a key of the configuration file set a flag, so they have the effect of the flag.
func TestEveryFlagIsRead(t *testing.T) {
	read := selected(t, ".", "../../internal/cli/tracing")
	in := map[string]map[string]bool{"main": read}
	flags := 0
	var check func(of reflect.Type)
	check = func(of reflect.Type) {
		for i := range of.NumField() {
			field := of.Field(i)
			_, command := field.Tag.Lookup("cmd")
			_, embedded := field.Tag.Lookup("embed")
			if field.Type.Kind() == reflect.Struct && (command || embedded || field.Anonymous) {
				check(field.Type)
				continue
			}
			if field.Tag.Get("help") == "" || field.Name == "Config" || // BeforeResolve asks kong for Config
				field.Name == "VersionFlag" { // kong acts on it
				continue
			}
			pkg := of.PkgPath()
			if in[pkg] == nil {
				_, dir, found := strings.Cut(pkg, "/weir/")
				require.True(t, found, pkg)
				in[pkg] = selected(t, filepath.Join("../..", dir))
			}
			flags++
			require.True(t, in[pkg][field.Name], "nothing reads the field %s of %s", field.Name, of)
		}
	}
	check(reflect.TypeFor[cli]())
	require.Greater(t, flags, 100)
}

// TestNoOtherVariable checks that the program reads variables of the environment through flags only, apart from those
// of Go and systemd. So each variable has a flag, and CheckVariables refuses every other name that begins with WEIR_.
func TestNoOtherVariable(t *testing.T) {
	for _, root := range []string{".", "../../internal/cli", "../../server", "../../engine", "../../persistence",
		"../../raftstore", "../../limiter", "../../policyfile"} {
		require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			file, err := parser.ParseFile(token.NewFileSet(), path, text, 0)
			require.NoError(t, err)
			ast.Inspect(file, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					require.False(t, strings.HasPrefix(lit.Value, `"WEIR_`) && len(lit.Value) > len(`"WEIR_"`),
						"%s names the variable %s", path, lit.Value)
				}
				return true
			})
			return nil
		}))
	}
}
