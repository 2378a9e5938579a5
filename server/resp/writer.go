package resp

// Writer receives the reply of a command, value by value. Array, Map, Set and Push begin an aggregate, whose elements
// the caller writes next. A Writer keeps no argument.
type Writer interface {
	Simple(text string)
	// Error writes an error reply. text begins with its word in capitals.
	Error(text string)
	Int(n int64)
	Bulk(text string)
	BulkBytes(b []byte)
	// Float writes f with so many significant digits, as a bulk string.
	Float(f float64, digits int)
	// Verbatim writes a text for a person.
	Verbatim(text string)
	Null()
	NullArray()
	Array(n int)
	Map(pairs int)
	Set(n int)
	Push(n int)
	// PairList begins a map, as Redis answers streams: in RESP2 it is an array of pairs. BeginPair begins each pair.
	PairList(pairs int)
	BeginPair()
	// Decision writes the five integers of a decision as an array that has more further elements.
	Decision(more int, allowed, remaining, retryMs, resetMs, limit int64)

	// Speak selects the protocol version, 2 or 3.
	Speak(proto int)
	// Len returns the length of everything written, in bytes. Truncate drops what was written after Len returned n.
	Len() int
	Truncate(n int)
}

// Reply adds to a Writer the forms that commands often write.
type Reply struct{ Writer }

func (r Reply) OK() { r.Simple("OK") }

// Strings writes an array of bulk strings.
func (r Reply) Strings(texts []string) {
	r.Array(len(texts))
	for _, t := range texts {
		r.Bulk(t)
	}
}

// Pair writes one entry of a map.
func (r Reply) Pair(name, value string)          { r.Bulk(name); r.Bulk(value) }
func (r Reply) PairInt(name string, value int64) { r.Bulk(name); r.Int(value) }

// Bool writes 1 or 0.
func (r Reply) Bool(b bool) {
	if b {
		r.Int(1)
	} else {
		r.Int(0)
	}
}

// SimpleSet writes a set of simple strings.
func (r Reply) SimpleSet(words []string) {
	r.Set(len(words))
	for _, word := range words {
		r.Simple(word)
	}
}
