package cmdline

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/weir-project/weir/internal/nearest"
)

// OtherNames maps names of flags in other servers and clients to weir's flags. An error message suggests the first of
// them that the command has.
var OtherNames = map[string][]string{
	"port": {"listen", "addr", "http"}, "p": {"listen", "addr", "http"}, "bind": {"listen"},
	"host": {"listen", "addr", "http"}, "address": {"listen", "addr"},
	"dir": {"data-dir"}, "d": {"data-dir"}, "conf": {"config"}, "c": {"config"},
	"a": {"password-file", "requirepass-file"}, "pass": {"password-file", "requirepass-file"},
	"password": {"password-file", "requirepass-file"},
	"aclfile":  {"users-file"}, "acl-file": {"users-file"}, "users": {"users-file"},
	"id": {"node-id"}, "name": {"node-id"}, "peers": {"join"}, "seeds": {"join"}, "secret": {"cluster-secret-file"},
	"addr": {"listen", "http"},
	"cert": {"tls-cert-file"}, "key": {"tls-key-file"}, "cacert": {"tls-ca-file"}, "ca": {"tls-ca-file"},
	"memory": {"max-memory"}, "policy": {"policies"}, "policy-file": {"policies"}, "f": {"config"},
}

// meant returns the flags of known that word most likely means. word may be written as on a command line, as a
// variable, or without separators: --max_memory, WEIR_MAX_MEMORY, maxmemory.
func meant(word string, known []string) []string {
	word = strings.ReplaceAll(strings.ToLower(strings.TrimLeft(word, "-")), "_", "-")
	word = strings.TrimPrefix(word, strings.ToLower(EnvPrefix)+"-")
	for _, flag := range OtherNames[word] {
		if slices.Contains(known, flag) {
			return []string{flag}
		}
	}
	return nearest.Names(word, known)
}

// Suggest returns the end of an error message about an unknown name: a suggestion of similar names, or "" if no name
// is similar. as writes a flag in the form of the message, such as --addr or WEIR_ADDR.
func Suggest(word string, known []string, as func(flag string) string) string {
	near := meant(word, known)
	for i := range near {
		near[i] = as(near[i])
	}
	if len(near) == 0 {
		return ""
	}
	return " (did you mean " + strings.Join(near, " or ") + "?)"
}

var (
	kongSuggest = regexp.MustCompile(`, did you mean (?:one of )?(.*)\?$`)
	unknownFlag = regexp.MustCompile(`^unknown flag (-\S+)`)
	minusValue  = regexp.MustCompile(`^--(\S+): expected \S+ value but got "(-[0-9]\S*)"`)
	noValue     = regexp.MustCompile(`^--(\S+): expected .*"EOL"`)
	noFlags     = regexp.MustCompile(`^missing flags: (.*)$`)
)

// Explain adds to an error of the parser what a flag accepts, or where the flags and commands are listed. It returns
// other errors unchanged.
func Explain(err error) error {
	var parse *kong.ParseError
	if !errors.As(err, &parse) || parse.Context == nil {
		return err
	}
	if text := explained(parse.Context, err.Error()); text != "" {
		return exitError{text, parse.ExitCode()}
	}
	return err
}

func explained(ctx *kong.Context, text string) string {
	at, command := ctx.Model.Node, ctx.Model.Name
	if selected := selectedOf(ctx); selected != nil {
		at, command = selected, selected.FullPath()
	}
	help := ": " + command + " --help lists flags and commands"
	text = kongSuggest.ReplaceAllString(text, " (did you mean $1?)")
	if m := unknownFlag.FindStringSubmatch(text); m != nil {
		return explainFlag(ctx, at, text, m[1]) + help
	}
	if m := minusValue.FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("--%s must be %s, not %q", m[1], accepted(FlagOf(at, "--"+m[1])), m[2])
	}
	if m := noValue.FindStringSubmatch(text); m != nil {
		return "no value after --" + m[1] + ": write " + written(FlagOf(at, "--"+m[1]))
	}
	if m := noFlags.FindStringSubmatch(text); m != nil {
		return command + " needs " + m[1] + help
	}
	if strings.HasPrefix(text, "--") { // about a value; an enum may have an empty one
		return strings.ReplaceAll(text, `must be one of "",`, "must be one of ")
	}
	return text + help
}

// written returns a flag with a value, as on a command line.
func written(flag *kong.Flag) string {
	return "--" + flag.Name + "=" + cmp.Or(flag.PlaceHolder, flag.Default, "VALUE")
}

// selectedOf returns the command that kong had selected when the error occurred, or nil.
func selectedOf(ctx *kong.Context) *kong.Node {
	for _, step := range slices.Backward(ctx.Path) {
		if step.Command != nil {
			return step.Command
		}
	}
	return nil
}

// explainFlag returns the message about a flag that a command does not have.
func explainFlag(ctx *kong.Context, at *kong.Node, text, word string) string {
	if at == ctx.Model.Node && FlagOf(Below(at, "serve"), word) != nil {
		return "unknown flag " + word + " (the command comes first: weir serve " + word + ")"
	}
	hint := Suggest(word, Names(FlagsOf(at)), func(name string) string { return written(FlagOf(at, "--"+name)) })
	if hint == "" {
		return text // kong may know better: it also suggests flags of a default command, as weir-bench run is
	}
	return "unknown flag " + word + hint
}

// exitError is an error with an exit code.
type exitError struct {
	text string
	code int
}

func (e exitError) Error() string { return e.text }

// ExitCode implements the interface by which kong reads exit codes.
func (e exitError) ExitCode() int { return e.code }
