package resp

import "strconv"

// Values is the Writer for a caller in the process of the server. It collects the reply as values of Go. A map is an
// array of names and values, as in RESP2. The zero value is empty.
type Values struct{ all []element }

var _ Writer = (*Values)(nil)

// element is one value of a reply in the order of writing.
type element struct {
	value any // a string, an int64, an Error, nil or an aggregate
	end   int // length of the reply up to here: Len
}

// aggregate begins an array of so many elements.
type aggregate int

// elementBytes is the length of an element in addition to its text.
const elementBytes = 16

func (v *Values) add(value any, text int) {
	v.all = append(v.all, element{value, v.Len() + elementBytes + text})
}

func (v *Values) Simple(text string)          { v.add(text, len(text)) }
func (v *Values) Error(text string)           { v.add(Error(text), len(text)) }
func (v *Values) Int(n int64)                 { v.add(n, 0) }
func (v *Values) Bulk(text string)            { v.add(text, len(text)) }
func (v *Values) BulkBytes(b []byte)          { v.Bulk(string(b)) }
func (v *Values) Float(f float64, digits int) { v.Bulk(strconv.FormatFloat(f, 'g', digits, 64)) }
func (v *Values) Verbatim(text string)        { v.Bulk(text) }
func (v *Values) Null()                       { v.add(nil, 0) }
func (v *Values) NullArray()                  { v.Null() }
func (v *Values) Array(n int)                 { v.add(aggregate(n), 0) }
func (v *Values) Map(pairs int)               { v.Array(2 * pairs) }
func (v *Values) PairList(pairs int)          { v.Array(pairs) }
func (v *Values) BeginPair()                  { v.Array(2) }
func (v *Values) Set(n int)                   { v.Array(n) }
func (v *Values) Push(n int)                  { v.Array(n) }
func (*Values) Speak(int)                     {}

func (v *Values) Decision(more int, allowed, remaining, retryMs, resetMs, limit int64) {
	v.Array(5 + more)
	for _, n := range [...]int64{allowed, remaining, retryMs, resetMs, limit} {
		v.Int(n)
	}
}

func (v *Values) Len() int {
	if len(v.all) == 0 {
		return 0
	}
	return v.all[len(v.all)-1].end
}

func (v *Values) Truncate(n int) {
	for v.Len() > n {
		v.all = v.all[:len(v.all)-1]
	}
}

// Value returns the first reply: a string, an int64, nil, or a slice of such values. An error reply is the error.
func (v *Values) Value() (any, error) {
	if len(v.all) == 0 {
		return nil, nil
	}
	rest := v.all
	value := next(&rest)
	if err, is := value.(Error); is {
		return nil, err
	}
	return value, nil
}

// All returns every reply as Value does, but an error reply as an Error among them.
func (v *Values) All() (replies []any) {
	for rest := v.all; len(rest) > 0; {
		replies = append(replies, next(&rest))
	}
	return replies
}

// next takes one value with all its elements from the front of rest.
func next(rest *[]element) any {
	value := (*rest)[0].value
	*rest = (*rest)[1:]
	n, is := value.(aggregate)
	if !is {
		return value
	}
	values := make([]any, n)
	for i := range values {
		values[i] = next(rest)
	}
	return values
}

// Texts returns the elements of the first reply in order, including those of nested arrays. An error reply is the
// error.
func (v *Values) Texts() ([]string, error) {
	value, err := v.Value()
	if err != nil {
		return nil, err
	}
	return texts(value, nil), nil
}

func texts(value any, all []string) []string {
	switch value := value.(type) {
	case []any:
		for _, one := range value {
			all = texts(one, all)
		}
		return all
	case int64:
		return append(all, strconv.FormatInt(value, 10))
	case string:
		return append(all, value)
	case Error:
		return append(all, string(value))
	}
	return append(all, "")
}
