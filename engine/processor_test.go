package engine_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/race"
)

// exactMath are the functions of package math whose results IEEE 754 defines to the last bit, or that only look at
// bits. The results of all other functions may differ between processors.
var exactMath = []string{
	"Abs", "Ceil", "Copysign", "FMA", "Float64bits", "Float64frombits", "Floor", "Inf", "IsInf", "IsNaN",
	"Ldexp", "Max", "Min",
	"NaN", "RoundToEven", "Signbit", "Sqrt", "Trunc",
}

// converters are the functions that may convert a float to an integer, because they check its size first. anyOrder
// are the functions that may range over a map, because the order has no effect.
var (
	converters = []string{"Truncate"}
	anyOrder   = []string{"Bytes", "Names", "countBlocks", "drainPolicies", "hashPolicies", "renumber"}
)

// replicated are the files whose results must be equal on all nodes of a cluster, by the pattern of their packages.
var replicated = map[string][]string{
	"./engine/...":      {"*.go"},
	"./server/commands": {"*script*.go", "count.go"},
	"./server/scripts":  {"*.go"},
}

// TestSameOnEveryProcessor checks that no replicated code computes a result that depends on the processor. Otherwise
// nodes of a cluster could differ.
func TestSameOnEveryProcessor(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	for pattern, names := range replicated {
		checked := 0
		for _, pkg := range goList(t, "-f", "{{if .GoFiles}}{{.ImportPath}}{{end}}", pattern) {
			rules := typeCheck(t, strings.TrimPrefix(pkg, module+"/"))
			for _, file := range rules.files {
				name := filepath.Base(rules.fset.Position(file.Pos()).Filename)
				if slices.ContainsFunc(names, func(p string) bool { ok, _ := filepath.Match(p, name); return ok }) {
					checked++
					assert.Empty(t, rules.allBroken(file), "the result must not depend on the processor")
				}
			}
		}
		require.NotZero(t, checked, pattern)
	}
}

// floatRules are the rules, and the type information of the code that they apply to.
type floatRules struct {
	fset  *token.FileSet
	files []*ast.File
	types.Info
}

// allBroken returns every break of a rule in a file.
func (r *floatRules) allBroken(file *ast.File) (all []string) {
	ast.PreorderStack(file, nil, func(n ast.Node, stack []ast.Node) bool {
		if why := r.broken(n, stack); why != "" {
			all = append(all, fmt.Sprintf("%s: %s", r.fset.Position(n.Pos()), why))
		}
		return true
	})
	return all
}

// broken returns the rule that a node of the syntax tree breaks and what to write instead, or "". stack has the nodes
// that contain the node.
func (r *floatRules) broken(n ast.Node, stack []ast.Node) string {
	switch n := n.(type) {
	case *ast.SelectorExpr:
		return r.badFunction(n)
	case *ast.AssignStmt:
		if n.Tok == token.MUL_ASSIGN && r.isFloat(n.Lhs[0]) {
			return "a processor may fuse this product with a later sum: write x = float64(x * y)"
		}
	case *ast.BinaryExpr:
		if n.Op == token.MUL && r.isFloat(n) && !r.isConverted(stack) {
			return "a processor may fuse this product with a sum and round once instead of twice: write float64(x * y)"
		}
	case *ast.CallExpr:
		return r.badConversion(n, stack)
	case *ast.RangeStmt:
		if _, isMap := r.TypeOf(n.X).Underlying().(*types.Map); isMap && !within(stack, anyOrder) {
			return "a map has no order: range over slices.Sorted(maps.Keys(m))"
		}
	}
	return ""
}

// badFunction returns the broken rule if a selector is a function whose results are not correctly rounded.
func (r *floatRules) badFunction(n *ast.SelectorExpr) string {
	f, ok := r.Uses[n.Sel].(*types.Func)
	switch {
	case !ok || f.Pkg() == nil:
		return ""
	case f.Pkg().Path() == "math/cmplx":
		return "math/cmplx is not correctly rounded: compute with integers (package arith)"
	case f.Pkg().Path() == "math" && !slices.Contains(exactMath, f.Name()):
		return fmt.Sprintf("math.%s may differ between processors: write exp2 or math.Ldexp for powers of 2, and "+
			"integers (package arith) for the rest", f.Name())
	}
	return ""
}

// badConversion returns the broken rule if a call converts a float to an integer outside converters.
func (r *floatRules) badConversion(call *ast.CallExpr, stack []ast.Node) string {
	if len(call.Args) != 1 || !r.Types[call.Fun].IsType() || !r.isFloat(call.Args[0]) {
		return ""
	}
	to, ok := r.TypeOf(call).Underlying().(*types.Basic)
	if !ok || to.Info()&types.IsInteger == 0 {
		return ""
	}
	if within(stack, converters) {
		return ""
	}
	return "processors convert what an integer does not hold differently: write engine.Truncate(x)"
}

// within reports whether stack contains a function with one of these names.
func within(stack []ast.Node, names []string) bool {
	return slices.ContainsFunc(stack, func(n ast.Node) bool {
		f, ok := n.(*ast.FuncDecl)
		return ok && slices.Contains(names, f.Name.Name)
	})
}

// isFloat reports whether an expression is a float, or complex, and not constant.
func (r *floatRules) isFloat(x ast.Expr) bool {
	basic, ok := r.TypeOf(x).Underlying().(*types.Basic)
	return ok && basic.Info()&(types.IsFloat|types.IsComplex) != 0 && r.Types[x].Value == nil
}

// isConverted reports whether the innermost node of stack is a conversion to a float.
func (r *floatRules) isConverted(stack []ast.Node) bool {
	for _, outer := range slices.Backward(stack) {
		if _, isParen := outer.(*ast.ParenExpr); isParen {
			continue
		}
		call, ok := outer.(*ast.CallExpr)
		return ok && r.Types[call.Fun].IsType() && r.isFloat(call)
	}
	return false
}

// TestFloatRules checks that each rule finds what it forbids, and allows its replacement.
func TestFloatRules(t *testing.T) {
	for _, test := range []struct{ body, finds string }{
		{"return math.Pow(x, y)", "math.Pow"},
		{"f := math.Exp2; return f(x)", "math.Exp2"},
		{"return real(cmplx.Exp(complex(x, y)))", "math/cmplx"},
		{"return x*y + 1", "float64(x * y)"},
		{"z := (x * y); return z - 1", "float64(x * y)"},
		{"return float64(x*y + 1)", "float64(x * y)"},
		{"x *= y; return x + 1", "float64(x * y)"},
		{"return float64(int64(x))", "engine.Truncate"},
		{"return float64(uint8(x + y))", "engine.Truncate"},
		{"for k := range m { x = k }; return x", "no order"},
		{"return float64(x*y) + math.Sqrt(x)/y - math.Floor(y) + 2*3.5", ""},
		{"x = float64((x * y)); return x + float64(len(m)*2)", ""},
	} {
		r := newFloatRules()
		source := "package p\nimport \"math\"\nconst _ = math.Pi\nfunc f(x, y float64, m map[float64]int) float64 { " +
			test.body + " }"
		if strings.Contains(test.body, "cmplx.") {
			source = strings.Replace(source, "math\"", "math\"; import \"math/cmplx\"", 1)
		}
		r.parse(t, "test.go", source)
		r.check(t, "math", "math/cmplx")
		found := r.allBroken(r.files[0])
		if test.finds == "" {
			require.Empty(t, found, test.body)
			continue
		}
		require.Len(t, found, 1, test.body)
		require.Contains(t, found[0], test.finds, test.body)
	}
}
