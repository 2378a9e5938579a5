package manpage

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"github.com/weir-project/weir/internal/cli/cmdline"
)

func anyFlag(node *kong.Node) bool {
	for _, flag := range node.Flags {
		if !flag.Hidden {
			return true
		}
	}
	return false
}

func writeManFlags(w io.Writer, node *kong.Node) {
	for _, flag := range node.Flags {
		if !flag.Hidden {
			writeManFlag(w, flag)
		}
	}
}

// writeManFlag writes a flag with its help, its default, its accepted values and its variable.
func writeManFlag(w io.Writer, flag *kong.Flag) {
	name := "\\fB" + roff("--"+flag.Name) + "\\fR"
	if flag.Short != 0 {
		name = "\\fB" + roff("-"+string(flag.Short)) + "\\fR, " + name
	}
	if !flag.IsBool() {
		name += "=\\fI" + roff(placeHolder(flag)) + "\\fR"
	}
	fmt.Fprintf(w, ".TP\n%s\n%s\n", name, roff(flag.Help))
	var more []string
	if flag.HasDefault && flag.Default != "" && !flag.IsBool() {
		more = append(more, "Default: "+flag.Default+".")
	}
	if words := cmdline.EnumOf(flag.Value); len(words) > 0 {
		more = append(more, "One of: "+strings.Join(words, ", ")+".")
	}
	if len(flag.Envs) > 0 {
		more = append(more, "Variable: "+strings.Join(flag.Envs, ", ")+".")
	}
	if len(more) > 0 {
		fmt.Fprintf(w, "%s\n", roff(strings.Join(more, " ")))
	}
}

// placeHolder returns the word that stands for a flag's value: its placeholder, or else the flag's name in capitals.
// --help may show the default there. A man page states the default in the text.
func placeHolder(flag *kong.Flag) string {
	if flag.PlaceHolder != "" {
		return flag.PlaceHolder
	}
	return strings.ToUpper(flag.Name)
}

// roff escapes text for the man macros. Every hyphen becomes a minus, because it may belong to a flag that a reader
// copies. No line is read as a request.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n", " ").Replace(strings.TrimSpace(text))
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}

func firstSentence(text string) string {
	first, _, _ := strings.Cut(text, ". ")
	first, _, _ = strings.Cut(first, ";")
	return strings.TrimSuffix(first, ".")
}

// lowerFirst returns text with a lower-case first letter, as the name line of a man page needs.
func lowerFirst(text string) string {
	r, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToLower(r)) + text[size:]
}
