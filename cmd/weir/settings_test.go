package main

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
)

// contents is the table of contents that internal/pages writes, and whose test holds it.
var contents = regexp.MustCompile(`(?s)(<!-- contents -->\n).*?(<!-- /contents -->\n)`)

// TestSettingsPage compares docs/configuration.md with the flags there are.
func TestSettingsPage(t *testing.T) {
	var want bytes.Buffer
	require.NoError(t, writeSettings(&want, newParser(new(cli)).Model))
	page, err := os.ReadFile("../../docs/configuration.md")
	require.NoError(t, err)
	require.Equal(t, want.String(), contents.ReplaceAllString(string(page), "$1$2"), "make docs writes it anew")
}

// A flag outside the groups would be missing on the page.
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
