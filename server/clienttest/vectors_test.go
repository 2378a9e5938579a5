package clienttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const vectorsFile = "vectors.json"

// vector is a command and its expected answer: a reply, a map, or an error that contains a text.
type vector struct {
	Send  []string
	Reply any
	Map   map[string]any
	Error string
}

type vectors struct {
	Vectors  []vector
	Pipeline struct {
		Send            []string
		Times, Admitted int
	}
	Transaction []vector
}

func loadVectors(t *testing.T) vectors {
	t.Helper()
	text, err := os.ReadFile(vectorsFile)
	require.NoError(t, err)
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var v vectors
	require.NoError(t, decoder.Decode(&v))
	return v
}

// check returns how an answer differs from the expected one, or "" if it does not differ. An answer has the types that
// Go clients return, or the types of decoded JSON.
func (v vector) check(got any, err error) string {
	want, seen := "", ""
	switch {
	case v.Error != "":
		want, seen = "an error with "+v.Error, fmt.Sprint(err)
		if err != nil && strings.Contains(err.Error(), v.Error) {
			return ""
		}
	case err != nil:
		want, seen = shown(v.Reply), err.Error()
	case v.Map != nil:
		want, seen = shown(v.Map), shown(pairs(got))
	default:
		want, seen = shown(v.Reply), shown(got)
	}
	if masked(want, seen) {
		return ""
	}
	return fmt.Sprintf("%q answered %s, not %s", v.Send, seen, want)
}

// masked compares two values in the format of shown. "*" in want stands for any single value.
func masked(want, seen string) bool {
	before, after, wild := strings.Cut(want, `"*"`)
	if !wild {
		return want == seen
	}
	rest, ok := strings.CutPrefix(seen, before)
	if !ok {
		return false
	}
	value, ok := strings.CutSuffix(rest, after)
	return ok && value != "" && !strings.ContainsAny(value, ",[]{}")
}

// shown formats a value as JSON, with sorted map keys and exact numbers.
func shown(v any) string {
	text, err := json.Marshal(plain(v))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// plain converts values that clients return to types that package json encodes.
func plain(v any) any {
	switch v := v.(type) {
	case []byte:
		return string(v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = plain(v[i])
		}
		return list
	case map[any]any:
		object := make(map[string]any, len(v))
		for name, value := range v {
			object[fmt.Sprint(name)] = plain(value)
		}
		return object
	}
	return v
}

// pairs converts the flat array that RESP2 uses for a map to a map.
func pairs(v any) any {
	list, ok := v.([]any)
	if !ok || len(list)%2 != 0 {
		return v
	}
	object := make(map[any]any, len(list)/2)
	for i := 0; i < len(list); i += 2 {
		object[plain(list[i])] = list[i+1]
	}
	return object
}

// reshaped are the commands that vectors.json leaves out. Client libraries convert the replies of most of them to types
// of their own, and eval needs script texts that only limiter libraries have. limiters_test.go and strings_test.go run
// these commands.
var reshaped = []string{"set", "setex", "psetex", "setnx", "expire", "pexpire", "expireat", "pexpireat",
	"persist", "script", "eval"}

// TestVectorsCoverEveryCommand checks that vectors.json has every command that the server lists.
func TestVectorsCoverEveryCommand(t *testing.T) {
	sent := map[string]bool{}
	for _, v := range loadVectors(t).Vectors {
		if v.Error == "" {
			sent[strings.ToLower(v.Send[0])] = true
		}
	}
	client := redis.NewClient(&redis.Options{Addr: startWeir(t).addr})
	t.Cleanup(func() { _ = client.Close() })
	docs, err := client.Do(t.Context(), "COMMAND", "DOCS").Result()
	require.NoError(t, err)
	limiting := 0
	for name, doc := range docs.(map[any]any) {
		name := name.(string)
		if slices.Contains(reshaped, name) {
			continue
		}
		switch group := doc.(map[any]any)["group"]; {
		case group == "decisions", group == "settling", group == "dialects", strings.HasPrefix(name, "rl."):
			limiting++
			assert.True(t, sent[name], "%s has no vector", name)
		}
	}
	assert.GreaterOrEqual(t, limiting, 19, "the server's own list of its limiting commands")
}

func TestVectorsSeeDifferences(t *testing.T) {
	number := func(n string) any { return json.Number(n) }
	five := vector{Reply: []any{number("1"), number("9"), "*"}}
	assert.Empty(t, five.check([]any{int64(1), int64(9), []byte("id")}, nil))
	assert.NotEmpty(t, five.check([]any{int64(1), int64(8), "id"}, nil))
	assert.NotEmpty(t, five.check([]any{int64(1), int64(9), "id", int64(0)}, nil))
	assert.NotEmpty(t, five.check([]any{int64(1), int64(9)}, nil))
	assert.NotEmpty(t, five.check([]any{int64(1), "9", "id"}, nil), "a string is no number")
	assert.NotEmpty(t, five.check(nil, os.ErrClosed))
	about := vector{Map: map[string]any{"a": number("1"), "bytes": "*"}}
	assert.Empty(t, about.check([]any{[]byte("a"), int64(1), "bytes", int64(47)}, nil))
	assert.Empty(t, about.check(map[any]any{"bytes": int64(47), "a": int64(1)}, nil))
	assert.NotEmpty(t, about.check(map[any]any{"a": int64(1)}, nil))
	failing := vector{Error: "not 'x'"}
	assert.Empty(t, failing.check(nil, fmt.Errorf("ERR rate must be like 10, not 'x'")))
	assert.NotEmpty(t, failing.check(nil, fmt.Errorf("ERR other")))
	assert.NotEmpty(t, failing.check("OK", nil))
}
