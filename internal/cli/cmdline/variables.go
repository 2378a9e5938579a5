package cmdline

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// EnvPrefix is the prefix of the environment variable of each flag: --data-dir is WEIR_DATA_DIR.
const EnvPrefix = "WEIR"

// CheckVariables refuses environment variables with weir's prefix that belong to no flag of any command, so that a
// misspelled limit is not ignored. Commands that read no variable skip the check.
func CheckVariables(app, selected *kong.Node, environ []string) (err error) {
	if selected == nil || !slices.ContainsFunc(FlagsOf(selected), func(f *kong.Flag) bool { return len(f.Envs) > 0 }) {
		return nil
	}
	known := Variables(app, nil)
	for _, text := range environ {
		name, value, _ := strings.Cut(text, "=")
		if !strings.HasPrefix(name, EnvPrefix+"_") || slices.Contains(known, name) || ofKubernetes(name, value) {
			continue
		}
		err = errors.Join(err, fmt.Errorf("unknown variable %s%s: each WEIR_* variable sets a flag; unset this one",
			name, Suggest(strings.TrimPrefix(name, EnvPrefix+"_"), Names(FlagsOf(selected)), VariableOf)))
	}
	return err
}

// Variables returns the variables of a command and of the commands below it.
func Variables(at *kong.Node, known []string) []string {
	for _, flag := range at.Flags {
		known = append(known, flag.Envs...)
	}
	for _, child := range at.Children {
		known = Variables(child, known)
	}
	return known
}

// VariableOf returns the variable that sets a flag.
func VariableOf(flag string) string {
	return EnvPrefix + "_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// serviceVariables are the variables that Kubernetes sets in every pod for a Service named weir or weir-*: its address,
// and the address of each port. The values are part of the pattern: WEIR_PORT=6380 is a mistake,
// WEIR_PORT=tcp://10.96.0.1:6380 is not.
var serviceVariables = []serviceVariable{
	serviceForm(`_SERVICE_HOST`, `[0-9a-fA-F.:]+`),
	serviceForm(`_SERVICE_PORT(_[A-Z0-9_]+)?`, `[0-9]+`),
	serviceForm(`_PORT(_[0-9]+_(TCP|UDP|SCTP))?`, `(tcp|udp|sctp)://.+:[0-9]+`),
	serviceForm(`_PORT_[0-9]+_(TCP|UDP|SCTP)_PROTO`, `(tcp|udp|sctp)`),
	serviceForm(`_PORT_[0-9]+_(TCP|UDP|SCTP)_PORT`, `[0-9]+`),
	serviceForm(`_PORT_[0-9]+_(TCP|UDP|SCTP)_ADDR`, `[0-9a-fA-F.:]+`),
}

type serviceVariable struct{ name, value *regexp.Regexp }

func serviceForm(name, value string) serviceVariable {
	return serviceVariable{
		regexp.MustCompile(`^` + EnvPrefix + `(_[A-Z0-9_]+)?` + name + `$`), regexp.MustCompile(`^` + value + `$`),
	}
}

// ofKubernetes reports whether a variable is one of serviceVariables.
func ofKubernetes(name, value string) bool {
	for _, form := range serviceVariables {
		if form.name.MatchString(name) && form.value.MatchString(value) {
			return true
		}
	}
	return false
}
