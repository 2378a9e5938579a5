package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// site is a place where one mutant differs from the source.
type site struct {
	id         int    // from 1, unique in the package
	file       string // as the package names it
	line       int
	function   string
	kind       string // what the mutant does: "never", "drop call", "< for <=", ...
	text       string // the source that it replaces
	start, end int    // bytes of text in the file
	mutated    string // replaces text when the mutant is on
	dropped    bool   // it does not compile
	nth        int    // number among equal sites of a function, from 1
}

// key names a site in equivalent.txt. It contains no line number, so that it stays valid when the file changes. The
// second of several equal sites ends with " #2".
func (s *site) key() string {
	key := strings.Join([]string{s.file, s.function, s.kind, oneLine(s.text)}, " | ")
	if s.nth > 1 {
		key += fmt.Sprint(" #", s.nth)
	}
	return key
}

// number numbers equal sites.
func number(sites []*site) {
	seen := map[string]int{}
	for _, s := range sites {
		key := s.key()
		seen[key]++
		s.nth = seen[key]
	}
}

func (s *site) String() string {
	return fmt.Sprintf("%s:%d: %s: %s: %s", s.file, s.line, s.function, s.kind, oneLine(s.text))
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// comparisons lists the replacements of each operator: the boundary moved by one, or the opposite.
var comparisons = map[token.Token][]token.Token{
	token.LSS: {token.LEQ}, token.LEQ: {token.LSS}, token.GTR: {token.GEQ}, token.GEQ: {token.GTR},
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL},
}

// sitesOf finds the mutants of a package directory, without its tests.
func sitesOf(dir string) ([]*site, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var all []*site
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		src, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		found, err := sitesIn(file, src)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	for i, s := range all {
		s.id = i + 1
	}
	return all, nil
}

// finder collects the sites of one file.
type finder struct {
	fset     *token.FileSet
	file     string
	src      []byte
	function string
	sites    []*site
}

func sitesIn(file string, src []byte) ([]*site, error) {
	f := &finder{fset: token.NewFileSet(), file: file, src: src}
	parsed, err := parser.ParseFile(f.fset, file, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, decl := range parsed.Decls {
		if fn, is := decl.(*ast.FuncDecl); is && fn.Body != nil {
			f.function = functionName(fn)
			ast.Inspect(fn.Body, f.visit)
		}
	}
	number(f.sites)
	return f.sites, nil
}

// functionName returns a name like Node.close for a method, and like newNode for a function.
func functionName(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return fn.Name.Name
	}
	receiver := fn.Recv.List[0].Type
	if star, is := receiver.(*ast.StarExpr); is {
		receiver = star.X
	}
	if index, is := receiver.(*ast.IndexExpr); is {
		receiver = index.X
	}
	if name, is := receiver.(*ast.Ident); is {
		return name.Name + "." + fn.Name.Name
	}
	return fn.Name.Name
}

func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt:
		f.condition(n.Cond)
	case *ast.SwitchStmt:
		if n.Tag == nil {
			f.cases(n.Body)
		}
	case *ast.BinaryExpr:
		f.binary(n)
	case *ast.ExprStmt:
		f.call(n)
	case *ast.GenDecl:
		return n.Tok != token.CONST
	}
	return true
}

// condition adds the mutant in which a guard never holds.
func (f *finder) condition(cond ast.Expr) {
	f.add("never", cond, "false")
}

func (f *finder) cases(body *ast.BlockStmt) {
	for _, stmt := range body.List {
		for _, cond := range stmt.(*ast.CaseClause).List {
			f.condition(cond)
		}
	}
}

func (f *finder) binary(n *ast.BinaryExpr) {
	left, right := f.text(n.X), f.text(n.Y)
	if n.Op == token.LAND || n.Op == token.LOR {
		f.add("left of "+n.Op.String()+" only", n, left)
		f.add("right of "+n.Op.String()+" only", n, right)
		return
	}
	for _, op := range comparisons[n.Op] {
		f.add(op.String()+" for "+n.Op.String(), n, left+" "+op.String()+" "+right)
	}
}

// call adds the mutant that omits a call whose results are unused.
func (f *finder) call(n *ast.ExprStmt) {
	call, is := n.X.(*ast.CallExpr)
	if !is || reportsOnly(call) {
		return
	}
	f.add("drop call", n, "")
}

// reportsOnly recognises calls that write logs, count, or panic. Omitting them changes the reports and not the
// decisions.
func reportsOnly(call *ast.CallExpr) bool {
	switch fn := call.Fun.(type) {
	case *ast.Ident:
		return fn.Name == "panic"
	case *ast.SelectorExpr:
		switch fn.Sel.Name {
		case "Debug", "Info", "Warn", "Error", "Inc", "Observe", "Printf", "Println":
			return true
		}
	}
	return false
}

func (f *finder) add(kind string, n ast.Node, mutated string) {
	start, end := f.fset.Position(n.Pos()), f.fset.Position(n.End())
	f.sites = append(f.sites, &site{
		file: f.file, line: start.Line, function: f.function, kind: kind, text: f.text(n),
		start: start.Offset, end: end.Offset, mutated: mutated,
	})
}

func (f *finder) text(n ast.Node) string {
	return string(f.src[f.fset.Position(n.Pos()).Offset:f.fset.Position(n.End()).Offset])
}
