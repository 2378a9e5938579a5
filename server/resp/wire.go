package resp

import (
	"strconv"

	"github.com/tidwall/redcon"
)

// Wire is the Writer for a client with a connection. Where RESP2 and RESP3 differ, it writes what Redis writes for the
// protocol version that the client selected.
type Wire struct {
	Out   []byte // replies not yet sent; the connection sends and empties it
	resp3 bool
}

var _ Writer = (*Wire)(nil)

func (w *Wire) Simple(text string) { w.Out = redcon.AppendString(w.Out, text) }
func (w *Wire) Error(text string)  { w.Out = redcon.AppendError(w.Out, text) }
func (w *Wire) Int(n int64)        { w.Out = redcon.AppendInt(w.Out, n) }
func (w *Wire) Bulk(text string)   { w.Out = redcon.AppendBulkString(w.Out, text) }
func (w *Wire) BulkBytes(b []byte) { w.Out = redcon.AppendBulk(w.Out, b) }
func (w *Wire) Array(n int)        { w.Out = redcon.AppendArray(w.Out, n) }
func (w *Wire) Map(pairs int)      { w.aggregate('%', pairs, 2*pairs) }
func (w *Wire) PairList(pairs int) { w.aggregate('%', pairs, pairs) }
func (w *Wire) Set(n int)          { w.aggregate('~', n, n) }
func (w *Wire) Push(n int)         { w.aggregate('>', n, n) }
func (w *Wire) Null()              { w.null("$-1\r\n") }
func (w *Wire) NullArray()         { w.null("*-1\r\n") }
func (w *Wire) Speak(proto int)    { w.resp3 = proto == 3 }
func (w *Wire) Len() int           { return len(w.Out) }
func (w *Wire) Truncate(n int)     { w.Out = w.Out[:n] }

func (w *Wire) Float(f float64, digits int) {
	var text [32]byte
	w.BulkBytes(strconv.AppendFloat(text[:0], f, 'g', digits, 64))
}

func (w *Wire) Verbatim(text string) {
	if !w.resp3 {
		w.Bulk(text)
		return
	}
	mark := len(w.Out)
	w.Bulk("txt:" + text)
	w.Out[mark] = '='
}

func (w *Wire) BeginPair() {
	if !w.resp3 {
		w.Array(2)
	}
}

// aggregate begins a reply of n elements of a RESP3 type. In RESP2 it begins an array of resp2 elements.
func (w *Wire) aggregate(resp3 byte, n, resp2 int) {
	if !w.resp3 {
		w.Array(resp2)
		return
	}
	mark := len(w.Out)
	w.Array(n)
	w.Out[mark] = resp3
}

func (w *Wire) null(resp2 string) {
	if !w.resp3 {
		w.Out = append(w.Out, resp2...)
		return
	}
	w.Out = append(w.Out, "_\r\n"...)
}
