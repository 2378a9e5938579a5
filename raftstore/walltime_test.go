package raftstore_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mayReadWallTime lists the functions that may convert a time to or from Unix time, or read the wall clock. None of
// them compares two wall times of this machine.
var mayReadWallTime = []string{
	"answer.go status",             // sent to other nodes
	"internal/host/heard.go hears", // compares with the clock of another machine
	"internal/leadership/walls.go NoteWalls",
	// Limiter time of a new cluster begins at the wall clock.
	"internal/leadership/leadership.go ClockFrom",
	"internal/leadership/leadership.go Stamp",                                    // a known mistake, for tests
	"internal/snapshots/snapshot.go Take", "internal/snapshots/snapshot.go Last", // only displayed
}

// TestNothingComparesWallTimes checks that only the listed functions use Unix times, because a duration between two
// of them jumps with the wall clock. An idle leader once stopped committing time for as long as its clock was set
// back.
func TestNothingComparesWallTimes(t *testing.T) {
	var files []string
	for _, pattern := range []string{"*.go", "*/*.go", "internal/*/*.go"} {
		more, err := filepath.Glob(pattern)
		require.NoError(t, err)
		files = append(files, more...)
	}
	files = slices.DeleteFunc(files, func(f string) bool { return strings.HasSuffix(f, "_test.go") })
	require.Greater(t, len(files), 50)
	forbidden := []string{"Unix", "UnixNano", "UnixMicro", "UnixMilli", "WallNs"}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		for _, decl := range parsed.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || slices.Contains(mayReadWallTime, file+" "+f.Name.Name) {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				if s, ok := call.Fun.(*ast.SelectorExpr); ok && slices.Contains(forbidden, s.Sel.Name) {
					t.Errorf("%s: %s uses %s: measure durations by Node.uptime or a time.Time", file, f.Name.Name,
						s.Sel.Name)
				}
				return true
			})
		}
	}
}
