package syntax

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestParseSyntax(t *testing.T) {
	show := func(syntax string) string { return showArguments(Parse(syntax)) }
	for syntax, want := range map[string]string{
		"":                               "",
		"key rate burst":                 "key:key rate burst",
		"key [key ...]":                  "key:key+",
		"[channel ...]":                  "channel?+",
		"key [COST n] [PARTIAL]":         "key:key COST=n? PARTIAL?",
		"key duration|FOREVER [TZ zone]": "key:key (duration FOREVER) TZ=zone?",
		"window threshold penalty [threshold penalty ...]": "window {threshold penalty}+",
		"LIB-NAME|LIB-VER value":                           "(LIB-NAME LIB-VER) value",
		"[2|3] [AUTH user password]":                       "(2 3)? {AUTH=user password}?",
		"[EX s|PX ms|PERSIST] [ENX]":                       "(EX=s PX=ms PERSIST)? ENX?",
		"[NOSAVE|SAVE] [NOW]":                              "(NOSAVE SAVE)? NOW?",
		"[TYPE type] [ID id ...]":                          "TYPE=type? ID=id?+",
	} {
		assert.Equal(t, want, show(syntax), syntax)
	}
}

func showArguments(args []Argument) string {
	var parts []string
	for _, a := range args {
		text := a.Name
		switch {
		case a.Kind == "oneof":
			text = "(" + showArguments(a.Inner) + ")"
		case a.Kind == "block":
			text = "{" + showArguments(a.Inner) + "}"
		case a.Kind == "key":
			text = a.Name + ":key"
		case a.Kind == "pure-token":
			text = a.Token
		case a.Token != "":
			text = a.Token + "=" + a.Name
		}
		if a.Optional {
			text += "?"
		}
		if a.Multiple {
			text += "+"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, " ")
}
