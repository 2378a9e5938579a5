package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	mkdocs     = root + "/bin/docs-venv/bin/mkdocs"
	siteConfig = root + "/scripts/docs-site"
)

// buildSite builds the site from a copy of docs/ that change has edited. It returns the directory of the site and the
// output of MkDocs.
func buildSite(t *testing.T, change func(docs string)) (site, said string, err error) {
	t.Helper()
	if os.Getenv("WEIRTEST_DOCS_SITE") == "" {
		t.Skip("SKIPPED: make test-docs-site runs this")
	}
	program, absErr := filepath.Abs(mkdocs)
	require.NoError(t, absErr)
	if _, err := os.Stat(program); err != nil {
		t.Skip("SKIPPED: no MkDocs: make docs-site says why")
	}
	dir := t.TempDir()
	docs := filepath.Join(dir, "docs")
	require.NoError(t, os.CopyFS(docs, os.DirFS(root+"/docs")))
	require.NoError(t, os.CopyFS(filepath.Join(dir, "scripts", "docs-site"), os.DirFS(siteConfig)))
	change(docs)
	build := exec.Command(program, "build", "--config-file", filepath.Join(dir, "scripts", "docs-site", "mkdocs.yml"))
	out, err := build.CombinedOutput()
	return filepath.Join(dir, "bin", "docs-site"), string(out), err
}

// loads matches what a browser fetches by itself from another host, for a page or a style sheet.
var loads = regexp.MustCompile(
	`<(?:script|img|iframe|source)[^>]*\ssrc="(?:https?:)?//[^"]*"` +
		`|<link[^>]*rel="(?:stylesheet|preconnect|preload|icon|dns-prefetch)"[^>]*href="(?:https?:)?//[^"]*"` +
		`|<link[^>]*href="(?:https?:)?//[^"]*"[^>]*rel="(?:stylesheet|preconnect|preload|icon|dns-prefetch)"` +
		`|(?:@import|url\()\s*["']?(?:https?:)?//[^"')]*`)

func TestSiteNeedsNoOtherHost(t *testing.T) {
	site, said, err := buildSite(t, func(string) {})
	require.NoError(t, err, said)
	pages, err := filepath.Glob(site + "/*.html")
	require.NoError(t, err)
	styles, err := filepath.Glob(site + "/assets/stylesheets/*.css")
	require.NoError(t, err)
	require.NotEmpty(t, styles)
	require.Greater(t, len(pages), 10)
	for _, name := range append(pages, styles...) {
		require.Empty(t, loads.FindAllString(read(t, name), -1), name)
		// The theme asks GitHub about the repository on a page that has this component.
		require.NotContains(t, read(t, name), `data-md-component="source"`, name)
	}
	require.Contains(t, read(t, site+"/search/search_index.json"), "configuration.html#--max-memory")
	require.Contains(t, read(t, site+"/index.html"), `href="operations.html#backup-and-restore"`)
	require.NotContains(t, read(t, site+"/operations.html"), "<!-- contents -->")
}

func TestSiteRefusesWhatLeadsNowhere(t *testing.T) {
	for name, line := range map[string]string{
		"page":    "[gone](gone.md)",
		"heading": "[gone](operations.md#gone)",
		"own":     "[gone](#gone)",
	} {
		t.Run(name, func(t *testing.T) {
			_, said, err := buildSite(t, func(docs string) {
				name := filepath.Join(docs, "metrics.md")
				require.NoError(t, os.WriteFile(name, []byte(read(t, name)+"\n"+line+"\n"), 0o600))
			})
			require.Error(t, err, said)
			require.Contains(t, strings.ToLower(said), "gone")
		})
	}
}

func TestSiteRefusesAPageOutsideTheIndex(t *testing.T) {
	_, said, err := buildSite(t, func(docs string) {
		require.NoError(t, os.WriteFile(filepath.Join(docs, "hidden.md"), []byte("# Hidden\n"), 0o600))
	})
	require.Error(t, err, said)
	require.Contains(t, said, "hidden.md")
}
