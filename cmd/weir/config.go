package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"

	"github.com/weir-project/weir/internal/cli/cmdline"
)

// configFlag is the only flag that a configuration file may not set.
const configFlag = "config"

// environmentFlag makes the environment of envoyproxy/ratelimit one of weir.
const environmentFlag = "envoy-environment"

// maxConfigBytes bounds a configuration file, which holds one value for each flag.
const maxConfigBytes = 1 << 20

var errConfig = errors.New("bad configuration file")

// BeforeResolve gives the configuration file, and after it the environment of envoyproxy/ratelimit, a lower precedence
// than flags and their variables. kong asks resolvers for every flag that the command line does not set.
func (s *serveCmd) BeforeResolve(ctx *kong.Context) error {
	given := func(name string) any {
		i := slices.IndexFunc(ctx.Flags(), func(flag *kong.Flag) bool { return flag.Name == name })
		return ctx.FlagValue(ctx.Flags()[i])
	}
	file := configFile{}
	if path, _ := given(configFlag).(string); path != "" {
		var err error
		if file, err = readConfig(path, ctx.Flags()); err != nil {
			return err
		}
	}
	if on, _ := given(environmentFlag).(bool); on || isTrue(file[environmentFlag]) {
		flags, err := ratelimitFlags(os.Getenv)
		if err != nil {
			return fmt.Errorf("--%s: %w", environmentFlag, err)
		}
		maps.Copy(flags, file)
		file = flags
	}
	ctx.AddResolver(file)
	return nil
}

// isTrue reports whether kong reads a value of a switch as true.
func isTrue(value string) bool {
	return slices.Contains([]string{"true", "1", "yes"}, strings.ToLower(value))
}

// configFile holds the values of a configuration file by flag name.
type configFile map[string]string

// readConfig reads a YAML file whose keys are names of flags. An unknown key is an error, so that a misspelled limit is
// not ignored.
func readConfig(path string, flags []*kong.Flag) (configFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: --config: %w", errConfig, err)
	}
	defer f.Close()
	file, err := parseConfig(io.LimitReader(f, maxConfigBytes), flags)
	if err != nil {
		return nil, fmt.Errorf("%w %s: %w", errConfig, path, err)
	}
	return file, nil
}

func parseConfig(r io.Reader, flags []*kong.Flag) (configFile, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(text)) == 0 { // for example after a failed redirection
		return nil, errors.New("the file is empty; write '{}' or a comment if there are no settings")
	}
	var doc yaml.Node
	if err := yaml.NewDecoder(bytes.NewReader(text)).Decode(&doc); errors.Is(err, io.EOF) {
		return configFile{}, nil
	} else if err != nil {
		return nil, err
	}
	top := doc.Content[0]
	if top.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: a line must be like 'listen: 127.0.0.1:6380'", top.Line)
	}
	known := make(map[string]bool, len(flags))
	for _, flag := range flags {
		// A flag without a variable belongs to one run of a command, and is not a setting.
		if flag.Name != configFlag && len(flag.Envs) > 0 {
			known[flag.Name] = true
		}
	}
	file := configFile{}
	for i := 0; i < len(top.Content); i += 2 {
		key, value := top.Content[i], top.Content[i+1]
		if !known[key.Value] {
			return nil, fmt.Errorf("line %d: unknown key %q%s: keys are the flags of weir serve without the dashes",
				key.Line, key.Value, cmdline.Suggest(key.Value, slices.Sorted(maps.Keys(known)),
					func(name string) string { return name }))
		}
		if _, twice := file[key.Value]; twice {
			return nil, fmt.Errorf("line %d: key %q is given twice", key.Line, key.Value)
		}
		if value.Kind != yaml.ScalarNode || value.Tag == "!!null" {
			return nil, fmt.Errorf("line %d: key %q needs a single value; write \"\" for an empty one",
				value.Line, key.Value)
		}
		file[key.Value] = value.Value
	}
	return file, nil
}

// Validate is part of kong.Resolver. readConfig has validated the file already.
func (configFile) Validate(*kong.Application) error { return nil }

// Resolve returns the file's value for a flag, unless the environment sets the flag. kong itself would prefer the file.
func (c configFile) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	for _, env := range flag.Envs {
		if _, ok := os.LookupEnv(env); ok {
			return nil, nil
		}
	}
	if value, ok := c[flag.Name]; ok {
		return value, nil
	}
	return nil, nil
}

// readPassword reads the password from a flag or a file.
func (s *serveCmd) readPassword() (string, error) {
	return cmdline.SecretFrom("requirepass", s.Requirepass, s.RequirepassFile)
}
