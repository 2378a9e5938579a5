package walls_test

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// knowGroups are the functions that may ask whether there is one Raft group or several, with the number of their
// conditionals. One group takes another path there, or has another name. The list should only become shorter.
var knowGroups = map[string]int{
	"raftstore/internal/budget/budget.go New":   1, // a group alone shares its memory with no other
	"raftstore/router/router.go only":           1, // a group alone decides keys of all slots in one step
	"server/commands/server.go seesReplicas":    1, // nodes say how far they are in the first group alone
	"server/commands/stream.go eventsGroup":     1, // the only log of events needs no number, one of several does
	"server/servertest/cluster.go Decide":       1, // as in the router
	"server/servertest/cluster.go DecideAtomic": 1,
	"server/servertest/cluster.go Topology":     1, // a test that names no groups has one
}

// formatsKnowGroups are the functions for which a format of weir 0.1.0 forces such conditionals. The entry that founds
// a cluster with one group has no number of groups and no slots. weir restore takes the number of a backup, unless it
// is given another.
var formatsKnowGroups = map[string]int{
	"raftstore/internal/fsm/state.go Form":  1,
	"raftstore/internal/fsm/state.go Owned": 1,
	"raftstore/internal/fsm/state.go check": 3,
	"raftstore/restore.go Restore":          1,
}

// severalAlone are the names of values that exist for several groups alone.
var severalAlone = []string{"Groups", "Slots"}

// TestFunctionsThatKnowTheNumberOfGroups checks that no function but those of the two lists has a conditional on the
// number of groups, and that none has more of them than its line says.
func TestFunctionsThatKnowTheNumberOfGroups(t *testing.T) {
	found := map[string][]string{}
	eachFile(t, func(path string, file *ast.File) {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || path == "engine/hold.go" { // its groups are those of a hold's keys
				continue
			}
			name := path + " " + f.Name.Name
			ast.Inspect(f, func(n ast.Node) bool {
				if e, ok := n.(ast.Expr); ok && asksForGroups(e) {
					found[name] = append(found[name], types.ExprString(e))
				}
				return true
			})
		}
	})
	known := maps.Clone(knowGroups)
	maps.Copy(known, formatsKnowGroups)
	for _, name := range slices.Sorted(maps.Keys(found)) {
		asks := found[name]
		assert.LessOrEqual(t, len(asks), known[name], "%s asks for the number of groups: %s", name, asks)
	}
	for name, times := range known {
		assert.Len(t, found[name], times, "%s asks less often: shorten its line", name)
	}
}

// asksForGroups reports whether an expression tells one group from several: it compares a number of groups with a
// constant, or a value of severalAlone with nil. The first group is no such case: every
// cluster has one.
func asksForGroups(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		return against(e.Op, e.X, e.Y) || against(e.Op, e.Y, e.X)
	case *ast.CallExpr: // max(groups, 1)
		return nameOf(e.Fun) == "max" && len(e.Args) == 2 && isNumber(e.Args[1]) && isGroups(e.Args[0])
	}
	return false
}

// against reports whether the comparison of x with a constant or nil tells one group from several.
func against(op token.Token, x, constant ast.Expr) bool {
	equal := op == token.EQL || op == token.NEQ
	if nameOf(constant) == "nil" {
		return equal && slices.Contains(severalAlone, nameOf(x))
	}
	return (equal || op == token.GTR) && isNumber(constant) && isGroups(x)
}

func isNumber(e ast.Expr) bool {
	l, ok := e.(*ast.BasicLit)
	return ok && l.Kind == token.INT
}

// isGroups reports whether an expression is a number of groups.
func isGroups(e ast.Expr) bool {
	if c, ok := e.(*ast.CallExpr); ok && len(c.Args) > 0 && (nameOf(c.Fun) == "len" || nameOf(c.Fun) == "max") {
		e = c.Args[0]
	}
	name := strings.ToLower(nameOf(e))
	return strings.HasSuffix(name, "groups")
}

// nameOf returns the last name of an expression such as x, *p.x, p.x or p.x().
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.StarExpr:
		return nameOf(e.X)
	case *ast.CallExpr:
		return nameOf(e.Fun)
	}
	return ""
}
