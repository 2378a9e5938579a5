package main

import "regexp"

// rule is a pattern that a sentence must not have.
type rule struct {
	pattern   *regexp.Regexp
	instead   string
	questions bool // whether it also applies to questions
}

const (
	nameComponent = "name the component that acts"
	nameAgain     = "name the component again"
)

// rules are about the English of the pages. A reader can search for the field's term and for the name of a component,
// but not for a word that weir invented.
var rules = []rule{
	subject(`^(?:Who|Whoever|Whom|Whatever)\b`, nameComponent),
	subject(`^What (?:is|are|was|were|the|a|an|came|counts|comes|no|follows|cannot|must) `, nameComponent),
	subject(`^There (?:is|are|was|were)\b`, nameComponent),
	word(`(?:that|those) of (?:the|a|an|its|it|which|another)`, nameAgain),
	word(`the one (?:that|who|which)`, nameAgain),
	word(`(?:a|an) \w+ that is none`, "say what is malformed or missing"),
	word(`reigns?`, "leadership"),
	word(`heirs?`, "recovery FSM"),
	word(`ascend(?:s|ed)?`, "become leader"),
	word(`roads?`, "path"),
	word(`purses?`, "the name of the resource"),
	word(`mend(?:s|ed|ing)?`, "correct, or repair"),
	word(`anew`, "again, or from the start"),
	word(`strangers?`, "unauthenticated client"),
	word(`slips?`, "mistake"),
	word(`whence|thereby|wherein`, "a word of today"),
	word(`by turns`, "alternately"),
	word(`next to no(?:thing|body)?`, "almost no"),
	word(`hears? of`, "gets the answer, or learns"),
	word(`tells? of`, "report"),
	word(`backpressure`, "back-pressure"),
	word(`read-index`, "ReadIndex, or read index"),
}

func subject(pattern, instead string) rule {
	return rule{regexp.MustCompile(pattern), instead, false}
}

func word(pattern, instead string) rule {
	return rule{regexp.MustCompile(`(?i)\b(?:` + pattern + `)\b`), instead, true}
}
