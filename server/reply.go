package server

import "github.com/tidwall/redcon"

// replyWriter writes replies. Where RESP2 and RESP3 differ it writes what Redis
// writes for the protocol that the client asked for.
type replyWriter struct {
	out   []byte // replies not yet written; the connection writes and empties it
	proto int    // 2 or 3
}

func (w *replyWriter) ok()                { w.out = redcon.AppendOK(w.out) }
func (w *replyWriter) simple(text string) { w.out = redcon.AppendString(w.out, text) }
func (w *replyWriter) int(n int64)        { w.out = redcon.AppendInt(w.out, n) }
func (w *replyWriter) bulk(text string)   { w.out = redcon.AppendBulkString(w.out, text) }
func (w *replyWriter) bulkBytes(b []byte) { w.out = redcon.AppendBulk(w.out, b) }
func (w *replyWriter) array(n int)        { w.out = redcon.AppendArray(w.out, n) }
func (w *replyWriter) mapOf(pairs int)    { w.out = aggregate(w.out, w.proto, '%', pairs, 2*pairs) }
func (w *replyWriter) setOf(n int)        { w.out = aggregate(w.out, w.proto, '~', n, n) }
func (w *replyWriter) pushOf(n int)       { w.out = aggregate(w.out, w.proto, '>', n, n) }

// aggregate begins a reply of n elements of a RESP3 type, or in RESP2 an array.
func aggregate(buf []byte, proto int, resp3 byte, n, resp2 int) []byte {
	if proto < 3 {
		return redcon.AppendArray(buf, resp2)
	}
	mark := len(buf)
	buf = redcon.AppendArray(buf, n)
	buf[mark] = resp3
	return buf
}

func (w *replyWriter) null() { w.out = appendNull(w.out, w.proto) }

func appendNull(buf []byte, proto int) []byte {
	if proto < 3 {
		return redcon.AppendNull(buf)
	}
	return append(buf, "_\r\n"...)
}

// verbatim writes a text meant for a person.
func (w *replyWriter) verbatim(text string) {
	if w.proto < 3 {
		w.bulk(text)
		return
	}
	mark := len(w.out)
	w.bulk("txt:" + text)
	w.out[mark] = '='
}

func (w *replyWriter) strings(texts []string) {
	w.array(len(texts))
	for _, t := range texts {
		w.bulk(t)
	}
}

// pair writes one entry of a map.
func (w *replyWriter) pair(name, value string)          { w.bulk(name); w.bulk(value) }
func (w *replyWriter) pairInt(name string, value int64) { w.bulk(name); w.int(value) }

// bool writes 1 or 0.
func (w *replyWriter) bool(b bool) {
	if b {
		w.int(1)
	} else {
		w.int(0)
	}
}

// simpleSet writes a set of words.
func (w *replyWriter) simpleSet(words []string) {
	w.setOf(len(words))
	for _, word := range words {
		w.simple(word)
	}
}

// error writes an error reply: its word in capitals and its text.
func (w *replyWriter) error(text string) { w.out = redcon.AppendError(w.out, text) }
