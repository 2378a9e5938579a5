package main

import (
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// switchFile is the file that the overlay adds to a package.
const switchFile = "mutant_switch_overlay.go"

// switchSource is a template with the package's name. A test process runs with at most one mutant on, and records each
// site that it reaches once.
const switchSource = `package %s

import (
	mutantos "os"
	mutantstrconv "strconv"
	mutantatomic "sync/atomic"
)

var (
	mutantActive, _ = mutantstrconv.Atoi(mutantos.Getenv("MUTANT"))
	mutantReached   [%d]mutantatomic.Bool
	mutantNotes, _  = mutantos.OpenFile(mutantos.Getenv("MUTANT_REACHED"), mutantos.O_APPEND|mutantos.O_WRONLY, 0)
)

func mutantOn(id int) bool {
	if mutantNotes != nil && !mutantReached[id].Load() && !mutantReached[id].Swap(true) {
		_, _ = mutantNotes.WriteString(mutantstrconv.Itoa(id) + "\n")
	}
	return mutantActive == id
}
`

// overlay writes the changed copies of a package's files to dir, and the JSON that describes them to the go command. It
// returns the path of the JSON.
func overlay(pkgDir, dir string, sites []*site) (string, error) {
	byFile := map[string][]*site{}
	for _, s := range sites {
		byFile[s.file] = append(byFile[s.file], s)
	}
	replace := map[string]string{}
	name := ""
	for file, in := range byFile {
		src, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		if name == "" {
			parsed, err := parser.ParseFile(token.NewFileSet(), file, src, parser.PackageClauseOnly)
			if err != nil {
				return "", err
			}
			name = parsed.Name.Name
		}
		copied := filepath.Join(dir, filepath.Base(file))
		if err := os.WriteFile(copied, instrument(src, in), 0o600); err != nil {
			return "", err
		}
		if err := replaceFile(replace, file, copied); err != nil {
			return "", err
		}
	}
	added := filepath.Join(dir, switchFile)
	most := slices.MaxFunc(sites, func(a, b *site) int { return a.id - b.id }).id
	if err := os.WriteFile(added, fmt.Appendf(nil, switchSource, name, most+1), 0o600); err != nil {
		return "", err
	}
	if err := replaceFile(replace, filepath.Join(pkgDir, switchFile), added); err != nil {
		return "", err
	}
	doc, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, doc, 0o600)
}

func replaceFile(replace map[string]string, file, by string) error {
	abs, err := filepath.Abs(file)
	replace[abs] = by
	return err
}

// instrument puts every mutant of a file behind its switch. Sites can be nested, so each is rendered with the sites
// inside it.
func instrument(src []byte, sites []*site) []byte {
	sites = slices.Clone(sites)
	// Outer sites come first. Among sites with the same extent each wraps the next.
	slices.SortStableFunc(sites, func(a, b *site) int {
		if a.start != b.start {
			return a.start - b.start
		}
		return b.end - a.end
	})
	r := renderer{src: src, sites: sites}
	return []byte(r.render(0, len(src)))
}

type renderer struct {
	src   []byte
	sites []*site // the remaining sites
}

// render returns the source from start to end with the sites in it.
func (r *renderer) render(start, end int) string {
	var out strings.Builder
	at := start
	for len(r.sites) > 0 && r.sites[0].start < end {
		s := r.sites[0]
		r.sites = r.sites[1:]
		out.Write(r.src[at:s.start])
		out.WriteString(s.switched(r.render(s.start, s.end)))
		at = s.end
	}
	out.Write(r.src[at:end])
	return out.String()
}

// switched returns the source of a site with its mutant as the alternative. original contains the mutants inside it.
func (s *site) switched(original string) string {
	if s.kind == "drop call" {
		return fmt.Sprintf("if !mutantOn(%d) { %s }", s.id, original)
	}
	if s.mutated == "false" {
		return fmt.Sprintf("(!mutantOn(%d) && (%s))", s.id, original)
	}
	// Only one of the two sides is evaluated.
	return fmt.Sprintf("(mutantOn(%d) && (%s) || !mutantOn(%d) && (%s))", s.id, s.mutated, s.id, original)
}
