package walls_test

import (
	"flag"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// CHANGELOG.md promises that commands, settings, metrics and the Go packages of the client are only added to. The files
// of testdata/oldest list what version 0.1.0 had. The flag writes them anew, in a checkout of that version.
var writeOldest = flag.Bool("oldest", false, "write testdata/oldest from the code and the documents that are here")

// wider lists what is written otherwise now, and takes everything that it took in version 0.1.0.
var wider = map[string]string{
	"RL.STRIKE key window threshold penalty [threshold penalty ...] [COST n] [ID token]": "DELAY may stand before a penalty",
	"SET key number [EX seconds|PX ms]":                                                  "a value may be any byte string",
	"SELECT 0":                                                                           "there are 16 databases",
	"client/httplimit: func (p *Proxies) In(header string) *Proxies":                     "there may be several headers",
}

// The documents are written from the tables of the program, which other tests check.
func TestOnlyAddedTo(t *testing.T) {
	for name, now := range map[string][]string{
		"commands": usages(t),
		"settings": matches(t, "docs/configuration.md", "(?m)^### `(--[a-z-]+)`$"),
		"metrics":  matches(t, "docs/metrics.md", "(?m)^\\| `(weir_[a-z_]+)` "),
		"client":   exported(t, "client", "client/clientprom", "client/grpclimit", "client/httplimit"),
	} {
		file := filepath.Join("testdata/oldest", name)
		if *writeOldest {
			require.NoError(t, os.WriteFile(file, []byte(strings.Join(now, "\n")+"\n"), 0o644))
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		before := strings.Split(strings.TrimSpace(string(text)), "\n")
		require.Greater(t, len(before), 30, name)
		for _, line := range before {
			kept := func(s string) bool { return s == line }
			if name == "commands" {
				kept = func(s string) bool { return onlyAdded(line, s) }
			}
			assert.True(t, wider[line] != "" || slices.ContainsFunc(now, kept), "%s of version 0.1.0: %s", name, line)
		}
	}
}

func matches(t *testing.T, file, pattern string) (all []string) {
	text, err := os.ReadFile(filepath.Join(root, file))
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
		all = append(all, m[1])
	}
	slices.Sort(all)
	return all
}

// usages returns the usage of every command and subcommand.
func usages(t *testing.T) []string {
	all := matches(t, "docs/commands.md", `(?m)^    ([A-Z.]+(?: .*)?)$`)
	for _, s := range matches(t, "docs/commands.md", "(?m)^\\| `([A-Z.]+ [A-Z]+(?:[^`]*))` \\|") {
		if !strings.HasSuffix(s, " HELP") {
			all = append(all, s)
		}
	}
	return all
}

// onlyAdded reports whether a command takes what it took before. What a command needs comes first, and is the same.
// Words that may follow have stayed.
func onlyAdded(before, now string) bool {
	needed, options, _ := strings.Cut(before, " [")
	if rest, ok := strings.CutPrefix(now, needed); !ok || rest != "" && !strings.HasPrefix(rest, " ") {
		return false
	}
	for _, word := range regexp.MustCompile(`\b[A-Z]{2,}\b`).FindAllString(options, -1) {
		if !regexp.MustCompile(`\b` + word + `\b`).MatchString(now) {
			return false
		}
	}
	return true
}

// exported returns a line for each exported function, method, constant, variable, type, field and embedded type.
func exported(t *testing.T, packages ...string) (all []string) {
	for _, dir := range packages {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		require.NoError(t, err)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			if ast.FileExports(parsed) {
				for _, d := range parsed.Decls {
					all = append(all, declared(t, dir, d)...)
				}
			}
		}
	}
	slices.Sort(all)
	return all
}

func declared(t *testing.T, dir string, d ast.Decl) (all []string) {
	if f, ok := d.(*ast.FuncDecl); ok {
		if f.Recv != nil && !ast.IsExported(strings.TrimLeft(source(t, f.Recv.List[0].Type), "*")) {
			return nil
		}
		f.Body, f.Doc = nil, nil
		return []string{dir + ": " + source(t, f)}
	}
	for _, s := range d.(*ast.GenDecl).Specs {
		switch s := s.(type) {
		case *ast.ValueSpec: // without its value, which is not promised
			for _, name := range s.Names {
				all = append(all, dir+": "+d.(*ast.GenDecl).Tok.String()+" "+name.Name)
			}
		case *ast.TypeSpec:
			fields, ok := s.Type.(*ast.StructType)
			if !ok {
				all = append(all, dir+": type "+source(t, s))
				continue
			}
			all = append(all, dir+": type "+s.Name.Name+" struct")
			for _, f := range fields.Fields.List {
				kind := source(t, f.Type)
				for _, name := range f.Names {
					all = append(all, dir+": "+s.Name.Name+"."+name.Name+" "+kind)
				}
				if len(f.Names) == 0 {
					all = append(all, dir+": "+s.Name.Name+" embeds "+kind)
				}
			}
		}
	}
	return all
}

// source returns the text of a node in one line, without comments.
func source(t *testing.T, node ast.Node) string {
	var b strings.Builder
	require.NoError(t, format.Node(&b, token.NewFileSet(), node))
	return strings.Join(strings.Fields(b.String()), " ")
}
