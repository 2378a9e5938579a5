package keys

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/gomodule/redigo/redis"

	"github.com/weir-project/weir/internal/cli/terminal"
)

// named is a reply of names and values, in order. A value is a string, a number, or a list of these.
type named []any

func readNamed(reply any, err error) (named, error) {
	values, err := redis.Values(reply, err)
	return named(legible(values)), err
}

// legible converts the bytes in a reply to strings.
func legible(values []any) []any {
	for i, v := range values {
		switch v := v.(type) {
		case []byte:
			values[i] = string(v)
		case []any:
			values[i] = legible(v)
		}
	}
	return values
}

// MarshalJSON makes a JSON object, including nested lists.
func (n named) MarshalJSON() ([]byte, error) {
	object := make(map[string]any, len(n)/2)
	for i := 0; i+1 < len(n); i += 2 {
		object[fmt.Sprint(n[i])] = n[i+1]
	}
	return json.Marshal(object)
}

func (n named) write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i := 0; i+1 < len(n); i += 2 {
		fmt.Fprintf(t, "%s\t%s\n", n[i], terminal.PlainText(fmt.Sprint(n[i+1])))
	}
	return t.Flush()
}
