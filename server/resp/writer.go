package resp

import "github.com/tidwall/redcon"

// Writer appends replies. Where RESP2 and RESP3 differ, it writes what Redis writes for the protocol version that the
// client selected.
type Writer struct {
	Out   []byte // replies not yet sent; the connection sends and empties it
	Proto int    // 2 or 3
}

// The following methods append one value. Array, Map, Set and Push begin an aggregate, whose elements the caller
// appends next.

func (w *Writer) OK()                { w.Out = redcon.AppendOK(w.Out) }
func (w *Writer) Simple(text string) { w.Out = redcon.AppendString(w.Out, text) }
func (w *Writer) Int(n int64)        { w.Out = redcon.AppendInt(w.Out, n) }
func (w *Writer) Bulk(text string)   { w.Out = redcon.AppendBulkString(w.Out, text) }
func (w *Writer) BulkBytes(b []byte) { w.Out = redcon.AppendBulk(w.Out, b) }
func (w *Writer) Array(n int)        { w.Out = redcon.AppendArray(w.Out, n) }
func (w *Writer) Map(pairs int)      { w.Out = Aggregate(w.Out, w.Proto, '%', pairs, 2*pairs) }
func (w *Writer) Set(n int)          { w.Out = Aggregate(w.Out, w.Proto, '~', n, n) }
func (w *Writer) Push(n int)         { w.Out = Aggregate(w.Out, w.Proto, '>', n, n) }

// Aggregate begins a reply of n elements of a RESP3 type. In RESP2 it begins an array of resp2 elements.
func Aggregate(buf []byte, proto int, resp3 byte, n, resp2 int) []byte {
	if proto < 3 {
		return redcon.AppendArray(buf, resp2)
	}
	mark := len(buf)
	buf = redcon.AppendArray(buf, n)
	buf[mark] = resp3
	return buf
}

// Null writes the null of the protocol.
func (w *Writer) Null() { w.Out = appendNull(w.Out, w.Proto) }

func appendNull(buf []byte, proto int) []byte {
	if proto < 3 {
		return redcon.AppendNull(buf)
	}
	return append(buf, "_\r\n"...)
}

// Verbatim writes a text for a person.
func (w *Writer) Verbatim(text string) {
	if w.Proto < 3 {
		w.Bulk(text)
		return
	}
	mark := len(w.Out)
	w.Bulk("txt:" + text)
	w.Out[mark] = '='
}

// Strings writes an array of bulk strings.
func (w *Writer) Strings(texts []string) {
	w.Array(len(texts))
	for _, t := range texts {
		w.Bulk(t)
	}
}

// Pair writes one entry of a map.
func (w *Writer) Pair(name, value string)          { w.Bulk(name); w.Bulk(value) }
func (w *Writer) PairInt(name string, value int64) { w.Bulk(name); w.Int(value) }

// Bool writes 1 or 0.
func (w *Writer) Bool(b bool) {
	if b {
		w.Int(1)
	} else {
		w.Int(0)
	}
}

// SimpleSet writes a set of simple strings.
func (w *Writer) SimpleSet(words []string) {
	w.Set(len(words))
	for _, word := range words {
		w.Simple(word)
	}
}

// Error writes an error reply. text begins with its word in capitals.
func (w *Writer) Error(text string) { w.Out = redcon.AppendError(w.Out, text) }
