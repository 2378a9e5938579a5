package main

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
)

// contents matches the table of contents, which internal/pages writes and tests.
var contents = regexp.MustCompile(`(?s)(<!-- contents -->\n).*?(<!-- /contents -->\n)`)

// TestSettingsPage checks that docs/configuration.md lists exactly the flags. With -update it writes the page.
func TestSettingsPage(t *testing.T) {
	const file = "../../docs/configuration.md"
	want := settingsPage(t, newParser(new(cli)).Model)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
		return
	}
	page, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, want, contents.ReplaceAllString(string(page), "$1$2"),
		"docs/configuration.md is out of date: run make docs")
}

// TestEveryServeFlagHasAGroup checks that each flag is in a group. The page would not show other flags.
func TestEveryServeFlagHasAGroup(t *testing.T) {
	for _, command := range newParser(new(cli)).Model.Children {
		if command.Name != "serve" {
			continue
		}
		for _, flag := range command.Flags {
			if !flag.Hidden {
				require.NotNil(t, flag.Group, flag.Name)
				known := slices.ContainsFunc(serveGroups, func(g kong.Group) bool { return g.Key == flag.Group.Key })
				require.True(t, known, flag.Name)
			}
		}
	}
}
