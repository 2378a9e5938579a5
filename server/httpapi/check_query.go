package httpapi

import (
	"net/url"
	"strings"

	"github.com/weir-project/weir/internal/quote"
	"github.com/weir-project/weir/limits"
	"github.com/weir-project/weir/server/resp"
)

// checkParams are the parameters besides key and key_rest. A parameter like key_header names a header. No other header
// counts, because clients can send any header.
var checkParams = map[string]bool{
	"policy": true, "policy_header": true, "key_header": true, "from_header": true, "cost": true, "cost_header": true,
	"priority": true, "priority_header": true,
	"deny_status": true, "error_status": true, "fields": true,
}

// checkQuery parses the parameters. key or key_rest is the last one.
func checkQuery(raw string) (params map[string]string, key string, err error) {
	raw, key, err = cutKey(raw)
	if err != nil {
		return nil, "", err
	}
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, "", resp.Error("ERR the query is malformed")
	}
	params = make(map[string]string, len(values))
	for name, list := range values {
		if !checkParams[name] {
			return nil, "", limits.Bad("parameter", "must be policy, key or key_rest, cost, priority, "+
				"deny_status, error_status, fields, or policy_header, key_header, from_header, cost_header, "+
				"priority_header", []byte(name))
		}
		if len(list) > 1 {
			return nil, "", resp.Error("ERR " + name + " is given twice")
		}
		params[name] = list[0]
	}
	return params, key, nil
}

// cutKey splits a query at its key. A proxy inserts text of its client there and cannot escape it. No parameter may
// therefore follow key, so that a client cannot add one with an &. All text after key_rest= is the key.
func cutKey(raw string) (before, key string, err error) {
	for at := 0; at < len(raw); {
		param, rest, more := strings.Cut(raw[at:], "&")
		name, value, _ := strings.Cut(param, "=")
		switch unescaped(name) {
		case "key_rest":
			_, all, _ := strings.Cut(raw[at:], "=")
			return raw[:at], unescaped(all), nil
		case "key":
			if more {
				return "", "", behindKey(rest)
			}
			return raw[:at], unescaped(value), nil
		}
		at += len(param) + 1
	}
	return raw, "", nil
}

// behindKey returns the error for a query with text after its key.
func behindKey(rest string) error {
	param, _, _ := strings.Cut(rest, "&")
	name, _, _ := strings.Cut(param, "=")
	if name == "" {
		name = "something"
	}
	return resp.Error("ERR " + quote.Printable([]byte(name), quote.MaxBytes) +
		" stands after key: put it before key; or write key_rest= if everything after it is the key")
}

// unescaped decodes the escapes of a text. It returns malformed text unchanged.
func unescaped(text string) string {
	if plain, err := url.PathUnescape(text); err == nil {
		return plain
	}
	return text
}
