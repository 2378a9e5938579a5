package policyfile_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/policyfile"
)

// TestExamplesOfTheDocs checks that each example has passing tests, and that they cover each of its policies.
func TestExamplesOfTheDocs(t *testing.T) {
	files, err := filepath.Glob("../docs/examples/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, path := range files {
		f, err := policyfile.OpenTests(path)
		require.NoError(t, err)
		results, err := f.RunTests()
		require.NoError(t, err)
		var words []string
		for _, r := range results {
			require.Empty(t, r.Failures, "%s:%d %s", path, r.Test.Line, r.Test.Name)
			for _, s := range r.Test.Steps {
				words = append(words, s.Words...)
			}
		}
		for _, p := range f.Policies {
			require.True(t, slices.Contains(words, p.Name), "%s: no test checks %s", path, p.Name)
		}
	}
}
