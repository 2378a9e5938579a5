package httpfields

import (
	"net/http"
	"strconv"
)

const (
	// mostFields are written of one Quota: Retry-After, two of the draft, three older.
	mostFields = 6
	// usualBytes hold the values of all fields with a name of usual length.
	usualBytes = 192
)

// fields are written one behind the other, so that the values of all of them take two
// pieces of memory: an application pays for them with every request.
type fields struct {
	text  []byte
	n     int
	names [mostFields]string
	ends  [mostFields]int // of their values in text
}

// end makes what was written since the last field the value of one.
func (f *fields) end(name string) {
	f.names[f.n], f.ends[f.n] = name, len(f.text)
	f.n++
}

func (f *fields) number(name string, n int64) {
	f.text = strconv.AppendInt(f.text, n, 10)
	f.end(name)
}

// set puts the fields into h, whose names are canonical here.
func (f *fields) set(h http.Header) {
	text, values, from := string(f.text), make([]string, f.n), 0
	for i := range values {
		values[i] = text[from:f.ends[i]]
		h[f.names[i]] = values[i : i+1 : i+1]
		from = f.ends[i]
	}
}
