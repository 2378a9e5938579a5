package httpfields

import (
	"net/http"
	"strconv"
)

const (
	// mostFields is the largest number of fields of one Quota: Retry-After, two of the draft, three older ones.
	mostFields = 6
	// usualBytes is enough for the values of all fields if the name has a usual length.
	usualBytes = 192
)

// fields holds the values of all fields one behind the other in text. All of them together need two
// allocations, because an application pays for them with every request.
type fields struct {
	text  []byte
	n     int
	names [mostFields]string
	ends  [mostFields]int // of their values in text
}

// end makes the bytes after the last field the value of the field name.
func (f *fields) end(name string) {
	f.names[f.n], f.ends[f.n] = name, len(f.text)
	f.n++
}

func (f *fields) number(name string, n int64) {
	f.text = strconv.AppendInt(f.text, n, 10)
	f.end(name)
}

// set puts the fields into h. Their names are canonical.
func (f *fields) set(h http.Header) {
	text, values, from := string(f.text), make([]string, f.n), 0
	for i := range values {
		values[i] = text[from:f.ends[i]]
		h[f.names[i]] = values[i : i+1 : i+1]
		from = f.ends[i]
	}
}
