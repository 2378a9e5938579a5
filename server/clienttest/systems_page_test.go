package clienttest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/policyfile"
)

const systemsPage = "../../examples/systems/requirements.md"

// systemRow is one row of the tables in examples/systems/requirements.md.
type systemRow struct {
	asked, answered, proven, state string
	section                        []string // the example files that the section of the row names
}

var (
	unescapedBar = regexp.MustCompile(`[^\\]\|`)
	codeSpan     = regexp.MustCompile("`([^`]+)`")
	commandSpan  = regexp.MustCompile(`^(RL\.[A-Z]+|[A-Z]+)( |$)`)
)

// systemRows reads the tables of examples/systems/requirements.md.
func systemRows(t *testing.T) (rows []systemRow) {
	t.Helper()
	text, err := os.ReadFile(systemsPage)
	require.NoError(t, err)
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		intro, _, _ := strings.Cut(section, "\n|")
		files := spans(intro, isExample)
		require.NotEmpty(t, files, "the policy files of a section: %s", intro)
		for _, line := range strings.Split(section, "\n") {
			if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| asked for ") {
				continue
			}
			cells := strings.Split(unescapedBar.ReplaceAllString(line, "\x00"), "\x00")
			require.Len(t, cells, 5, line)
			for i := range cells {
				cells[i] = strings.TrimSpace(strings.ReplaceAll(strings.TrimPrefix(cells[i], "|"), `\|`, "|"))
			}
			rows = append(rows, systemRow{cells[0], cells[1], cells[2], cells[3], files})
		}
	}
	return rows
}

// spans returns the code spans of a text for which kind is true.
func spans(text string, kind func(string) bool) (found []string) {
	for _, span := range codeSpan.FindAllStringSubmatch(text, -1) {
		if kind(span[1]) {
			found = append(found, span[1])
		}
	}
	return found
}

func isExample(span string) bool { return strings.HasSuffix(span, ".yaml") }
func isCommand(span string) bool { return commandSpan.MatchString(span) }
func isTest(span string) bool    { return strings.Contains(span, "Test") }

// states are the values of the last column of examples/systems/requirements.md: what the owner of the system has to change. "yes" is for
// rows that do not say it yet. A requirement that weir refuses has "no: " and the reason.
var states = []string{"yes", "unchanged", "configuration", "a few lines"}

// TestSystemsPage checks that every row of examples/systems/requirements.md states what the owner of the system has to change, or why
// weir refuses. A row that weir serves must name its solution and a test. Every test that a row names must exist.
func TestSystemsPage(t *testing.T) {
	rows := systemRows(t)
	require.Greater(t, len(rows), 100)
	known := map[string]map[string]bool{}
	for _, row := range rows {
		if reason, refused := strings.CutPrefix(row.state, "no: "); refused {
			require.NotEmpty(t, reason, row.asked)
		} else {
			require.Contains(t, states, row.state, row.asked)
			require.NotEmpty(t, row.answered, row.asked)
			require.NotEmpty(t, spans(row.proven, isTest), row.asked)
		}
		for _, test := range spans(row.proven, isTest) {
			dir, name, inPackage := strings.Cut(test, ".")
			if !inPackage {
				dir, name = "server/clienttest", test
			}
			if known[dir] == nil {
				known[dir] = testNames(t, "../../"+dir)
			}
			require.True(t, known[dir][name], "%s: there is no %s", row.asked, test)
		}
	}
}

// TestSystemsPageCommands executes every command in examples/systems/requirements.md, under the policies that its row or section names.
func TestSystemsPageCommands(t *testing.T) {
	s := startSystem(t, "website.yaml")
	for _, row := range systemRows(t) {
		s.adopt(append(spans(row.answered, isExample), row.section...)[0])
		for _, command := range spans(row.answered, isCommand) {
			_, err := s.Do(t.Context(), anys(strings.Fields(command))...).Result()
			require.NoError(t, err, command)
		}
	}
}

// adopt replaces the policies of the server by those of another example file.
func (s *system) adopt(example string) {
	s.t.Helper()
	s.says("OK", "FLUSHALL")
	for _, name := range strings.Fields(s.send("RL.POLICY LIST")) {
		s.says("1", "RL.POLICY DEL "+name)
	}
	file, err := policyfile.Open(examplesDir + example)
	require.NoError(s.t, err)
	for _, step := range file.Compare(nil).Steps {
		require.NoError(s.t, s.Do(s.t.Context(), anys(append([]string{"RL.POLICY"}, step.Words...))...).Err())
	}
}

// TestEveryExampleIsNamed checks that examples/systems/requirements.md or docs/policies.md names each example file. The
// test above loads the files that the first names, and policyfile tests the limits of all.
func TestEveryExampleIsNamed(t *testing.T) {
	policies, err := os.ReadFile("../../docs/policies.md")
	require.NoError(t, err)
	named := map[string]bool{}
	for _, row := range systemRows(t) {
		for _, file := range row.section {
			named[file] = true
		}
	}
	files, err := filepath.Glob(examplesDir + "*.yaml")
	require.NoError(t, err)
	for _, file := range files {
		name := filepath.Base(file)
		require.True(t, named[name] || strings.Contains(string(policies), "/"+name), "%s is in neither page", file)
		delete(named, name)
	}
	require.Empty(t, named, "examples that are not there")
}
