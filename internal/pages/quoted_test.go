package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	// quotedError matches an error reply that a page quotes: a word in capitals and its text.
	quotedError = regexp.MustCompile("`-?(?:ERR|UNKNOWN|TRYAGAIN|CLUSTERDOWN|OVERLOADED|OOM|NOPERM|NOAUTH) ([a-z][^`]*)`")
	// varying matches what differs from one reply to the next, verb what stands for it in the code.
	varying = regexp.MustCompile(`\d+|'[^']*'|<[^>]*>|\.\.\.|\(`)
	verb    = regexp.MustCompile(`%[-+# 0-9.]*[a-zA-Z]`)
)

// minQuoted is the least number of words in a row that must be in the code. Fewer words may vary.
const minQuoted = 3

// A user searches the pages for an error as it is.
func TestQuotedErrorsAreInTheCode(t *testing.T) {
	var code []string
	for _, file := range files(t, ".go") {
		if !strings.HasSuffix(file, "_test.go") {
			code = append(code, texts(t, file)...)
		}
	}
	all := strings.Join(code, "\n")
	checked := 0
	for _, name := range append(files(t, ".md"), filepath.Join(root, "README.md")) {
		for _, m := range quotedError.FindAllStringSubmatch(read(t, name), -1) {
			for _, words := range varying.Split(m[1], -1) {
				if words = strings.Trim(words, " ,:;"); len(strings.Fields(words)) >= minQuoted {
					checked++
					assert.True(t, strings.Contains(all, words), "%s quotes an error that no code has: %s", name, m[0])
				}
			}
		}
	}
	require.Greater(t, checked, 5)
}

// texts returns the texts in the code of a file, split where values are written into them.
func texts(t *testing.T, file string) (all []string) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	ast.Inspect(parsed, func(n ast.Node) bool {
		if x, ok := n.(ast.Expr); ok {
			if s := text(x); s != "" {
				all = append(all, verb.Split(s, -1)...)
				return false
			}
		}
		return true
	})
	return all
}

// text returns the text of a literal, or of several that are joined.
func text(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.BasicLit:
		s, _ := strconv.Unquote(x.Value)
		return s
	case *ast.BinaryExpr:
		if x.Op == token.ADD {
			return text(x.X) + text(x.Y)
		}
	}
	return ""
}
