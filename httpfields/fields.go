package httpfields

import (
	"net/http"
	"strconv"
)

const (
	// mostFields is the largest number of fields of one Quota: Retry-After, two of the draft, three older fields.
	mostFields = 6
	// usualBytes is enough for the values of all fields if the name has a usual length.
	usualBytes = 192
)

// fields has the values of all fields of a response, one after the other in text. Every request of an application pays
// for these fields, so all of them together need only two allocations.
type fields struct {
	text  []byte
	n     int                // the number of fields
	names [mostFields]string // canonical, as in http.Header
	ends  [mostFields]int    // where the value of each field ends in text
}

// end completes a field: the bytes of text after the previous field become the value of the field name.
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
