package scripts

import (
	"crypto/sha1"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// script is a Lua text with everything in which white space means something.
const script = `
  -- count, and "end
	local text = 'a  b\'  --c' .. "\"  d" .. [[ e
	  f ]] .. [==[ ]] --g ]==]
  --[[ a long
       comment ]]
  local t = {[1]=2, [ 'k' ] = t[t[1]]} -- [ not [ long
  if #t - -1 > 0 then
      return text
  end
`

// TestWhiteSpaceOfScripts checks that texts which differ only in white space and comments have one form, and that
// other texts have other forms.
func TestWhiteSpaceOfScripts(t *testing.T) {
	form := func(text string) string {
		out, ok := normal([]byte(text))
		require.True(t, ok, text)
		return string(out)
	}
	const want = `local text = 'a  b\'  --c' .. "\"  d" .. [[ e
	  f ]] .. [==[ ]] --g ]==]
local t = {[1]=2, [ 'k' ] = t[t[1]]}
if #t - -1 > 0 then
return text
end`
	require.Equal(t, want, form(script))
	require.Equal(t, want, form(want), "the form is its own form")
	for name, same := range map[string]string{
		"trimmed":      strings.TrimSpace(script),
		"indented":     strings.ReplaceAll(strings.ReplaceAll(script, "\n  if", "\n\t\t  if"), "\n      r", "\nr"),
		"spaces":       strings.ReplaceAll(script, " = {", "  =\t{"),
		"at ends":      strings.ReplaceAll(script, "then\n", "then \t\n"),
		"empty lines":  strings.ReplaceAll(script, "then\n", "\nthen\n \n"),
		"no comments":  strings.ReplaceAll(strings.ReplaceAll(script, "-- count, and \"end", ""), " -- [ not [ long", ""),
		"comment last": script + "-- the end",
	} {
		if name == "empty lines" { // then is on a line of its own: a line break where there was a space
			require.NotEqual(t, want, form(same))
			continue
		}
		require.Equal(t, want, form(same), name)
	}
	lines := strings.ReplaceAll(want, "[[ e\n", "[[ e ")
	require.Equal(t, lines, form(strings.ReplaceAll(lines, "\n", "\r\n")), "CRLF")
	require.Equal(t, lines, form(strings.ReplaceAll(lines, "\n", "\r")), "CR")
	for _, other := range []string{
		strings.Replace(script, "'a  b", "'a b", 1), strings.Replace(script, "[[ e", "[[e", 1),
		strings.Replace(script, "- -1", "--1", 1), strings.Replace(script, "]==]", "]=]", 1) + "]==]",
		strings.Replace(script, "--[[ a", "--[ a", 1), strings.Replace(script, "return text", "returntext", 1),
	} {
		require.NotEqual(t, want, form(other))
	}
	for _, broken := range []string{"'a", `"a\"`, "'a\nb'", "[[a", "[=[a]]", "--[[a", "--[==[ ]] ]=]", `'\`} {
		_, ok := normal([]byte(broken))
		require.False(t, ok, broken)
	}
	for _, odd := range []string{"", "[", "[=", "--", "-", "--[", "--[=", "\r\n"} {
		_, ok := normal([]byte(odd))
		require.True(t, ok, odd)
	}
}

// TestScriptsInAnyWhiteSpace checks that a script with a form is recognised in any white space, and then by the SHA-1
// of that text, and that a script without a form is not.
func TestScriptsInAnyWhiteSpace(t *testing.T) {
	sumOf := func(text string) string {
		sum := sha1.Sum([]byte(text))
		return hex.EncodeToString(sum[:])
	}
	loose := &Script{ID: 1, texts: []scriptText{{sumOf("return 1\n"), ""}}, form: sumOf("return 1")}
	exact := &Script{ID: 2, texts: []scriptText{{sumOf("return 2"), ""}}}
	table := newScriptTable([]*dialect{{scripts: []*Script{loose, exact}}})
	require.Same(t, loose, table.OfSum([]byte(sumOf("return 1\n"))))
	for _, text := range []string{"return 1", "\r\nreturn\t1\r\n", "  return 1 -- one"} {
		require.Nil(t, table.OfSum([]byte(sumOf(text))), "nobody has sent this text")
		for range 2 {
			sc, sum := table.OfText([]byte(text))
			require.Same(t, loose, sc, text)
			require.Equal(t, sumOf(text), hex.EncodeToString(sum[:]), "a client computes the SHA-1 of what it sends")
			require.Same(t, loose, table.OfSum([]byte(sumOf(text))))
		}
	}
	sc, _ := table.OfText([]byte("return 2\n"))
	require.Nil(t, sc)
	for i := range 2 * maxLearned {
		sc, _ := table.OfText([]byte("return 1" + strings.Repeat(" ", i)))
		require.Same(t, loose, sc)
		require.LessOrEqual(t, len(table.learned), maxLearned)
	}
}

// FuzzNormal checks that the form of a text is its own form, and never longer than the text.
func FuzzNormal(f *testing.F) {
	f.Add(script)
	f.Add("a --b\n[=[c]=]")
	f.Fuzz(func(t *testing.T, text string) {
		once, ok := normal([]byte(text))
		if !ok {
			return
		}
		twice, ok := normal(once)
		require.True(t, ok)
		require.Equal(t, string(once), string(twice))
		require.LessOrEqual(t, len(once), len(text))
	})
}
