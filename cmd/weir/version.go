package main

import (
	"fmt"
	"os"

	"github.com/weir-project/weir/internal/cli/buildinfo"
	"github.com/weir-project/weir/internal/cli/terminal"
)

// version returns the version that other programs and nodes see.
func version() string { return buildinfo.Read().Version }

type versionCmd struct {
	JSON bool `env:"-" name:"json" help:"Print JSON."`
}

func (v *versionCmd) Run() error {
	if v.JSON {
		return terminal.WriteJSON(os.Stdout, buildinfo.Read())
	}
	_, err := fmt.Println(buildinfo.Read())
	return err
}
