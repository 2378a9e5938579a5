package httplimit

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestGlobsMatchAsWritten(t *testing.T) {
	for pattern, paths := range map[string]struct{ yes, no string }{
		"**/login**": {"/login /api/login /api/login/reset /x/loginAgain /login/ //login",
			"/ /logi /Login /xlogin /relogin"},
		"**/login":   {"/login /a/b/login /login/", "/login/x /loginx"},
		"**login**":  {"/login /xlogin /a/relogin/b", "/logi"},
		"/api/**":    {"/api /api/ /api/a /api/a/b/", "/ /apis /ap /x/api/a"},
		"/api/*":     {"/api/ /api/a /api/a/", "/api /api/a/b /apis"},
		"/a/**/b":    {"/a/b /a/x/b /a/x/y/b /a/x/y/b/", "/ab /a/xb /a/bx /a/x/yb /b"},
		"/a/**/b/**": {"/a/b /a/b/ /a/x/b/y/z", "/a/bx /a"},
		"/a/x**/b":   {"/a/x/b /a/xy/b /a/x/y/b", "/a/b /a/xb"},
		"/**":        {"/ /a /a/b/", ""},
		"**":         {"/ /a /a/b/", ""},
		"/*":         {"/ /a /a/", "/a/b"},
		"/health**":  {"/health /healthz /health/x /health/", "/x/health /healt"},
		"/v*/login":  {"/v/login /v1/login /v1/login/", "/v1/x/login /login /v1login"},
		"/*.css":     {"/.css /a.css /a.css.css", "/a/b.css /a.cssx"},
		"**.css":     {"/a.css /a/b.css", "/a.css/b"},
		"/*/*/c":     {"/a/b/c", "/a/c /a/b/b/c"},
		"/a*b*c":     {"/abc /abbc /axbxcc /abcbc", "/ab/c /acb"},
		"**/":        {"/ /a/", "/a"},
		"/%2A/*":     {"/*/a", "/x/a"},
		"/a%2Fb/*":   {"/a%2Fb/c", "/a/b/c"},
		"/k%C3%A4*":  {"/käse", "/kase"},
		"/käse*":     {"/käse", "/kase"},
	} {
		g, err := compileGlob(pattern)
		require.NoError(t, err, pattern)
		for _, path := range strings.Fields(paths.yes) {
			require.True(t, g.match(cleanPath(path)), "%s must match %s", pattern, path)
		}
		for _, path := range strings.Fields(paths.no) {
			require.False(t, g.match(path), "%s must not match %s", pattern, path)
		}
	}
}

// regexpOf returns a regular expression that matches the same paths as a pattern.
func regexpOf(pattern string) *regexp.Regexp {
	text := regexp.QuoteMeta(pattern)
	const many, one = `\*\*`, `\*`
	if rest, ok := strings.CutSuffix(text, "/"+many); ok {
		text = rest + "(?:/.^)?"
	}
	text = strings.ReplaceAll(text, "/"+many+"/", "/(?:.^/)?")
	text = strings.ReplaceAll(text, many, ".^")
	text = strings.ReplaceAll(text, one, "[^/]*")
	return regexp.MustCompile(`(?s)^` + strings.ReplaceAll(text, ".^", ".*") + `/?$`)
}

func FuzzGlob(f *testing.F) {
	for _, pattern := range []string{
		"**/login**", "/a/**/b", "/a*b*c", "/**", "/a/x**/b*/", strings.Repeat("/a*b", 20),
		"/" + strings.Repeat("*a", 100),
	} {
		for _, path := range []string{
			"/login", "/a/b", "/a/x/y/b/", "/ab/abc", strings.Repeat("/aab", 20), "/" + strings.Repeat("a", 200),
		} {
			f.Add(pattern, path)
		}
	}
	f.Fuzz(func(t *testing.T, pattern, path string) {
		if !strings.HasPrefix(pattern, "/") && !strings.HasPrefix(pattern, "**") ||
			strings.ContainsAny(pattern, `%^\`) ||
			!utf8.ValidString(pattern) || !utf8.ValidString(path) {
			t.Skip("regexpOf does not know these")
		}
		g, err := compileGlob(pattern)
		if err != nil {
			t.Skip(err)
		}
		path = cleanPath(path)
		require.Equal(t, regexpOf(pattern).MatchString(path), g.match(path), "%q %q", pattern, path)
	})
}
