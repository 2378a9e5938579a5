// Package resptest provides inputs for tests of packages that read the Redis protocol.
package resptest

import (
	"fmt"
	"strings"
)

// Multibulk encodes a command as clients send it.
func Multibulk(args ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, arg := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(arg), arg)
	}
	return b.String()
}

// Hostile maps names to streams that must fail with the given error, after the preceding command was framed.
var Hostile = map[string]struct{ Stream, Err string }{
	"negative bulk":              {"*1\r\n$-2\r\n", "invalid bulk length"},
	"null bulk":                  {"*1\r\n$-1\r\n", "invalid bulk length"},
	"bulk of 2^63-1":             {"*1\r\n$9223372036854775807\r\nx\r\n", "invalid bulk length"},
	"bulk of 2^64+1":             {"*1\r\n$18446744073709551617\r\nx\r\n", "invalid bulk length"},
	"bulk of 1 GB":               {"*1\r\n$1000000000\r\n", "invalid bulk length"},
	"bulk one too long":          {"*1\r\n$65537\r\n", "invalid bulk length"},
	"bulk with a plus":           {"*1\r\n$+4\r\nPING\r\n", "invalid bulk length"},
	"bulk with a leading zero":   {"*1\r\n$04\r\nPING\r\n", "invalid bulk length"},
	"bulk with a space":          {"*1\r\n$ 4\r\nPING\r\n", "invalid bulk length"},
	"bulk without a number":      {"*1\r\n$\r\nPING\r\n", "invalid bulk length"},
	"bulk of one not a digit":    {"*1\r\n$:\r\n0123456789\r\n", "invalid bulk length"},
	"bulk of two, one no digit":  {"*1\r\n$1:\r\n01234567890123456789\r\n", "invalid bulk length"},
	"bulk header CR without LF":  {"*1\r\n$4\rxPING\r\n", "invalid bulk length"},
	"bulk header LF without CR":  {"*1\r\n$10x\n0123456789\r\n", "invalid bulk length"},
	"bulk LF without CR":         {"*1\r\n$4\r\nPINGx\n", "bulk string does not end in CRLF"},
	"bulk length without end":    {"*1\r\n$" + strings.Repeat("1", 100), "too big bulk count string"},
	"bulk longer than declared":  {"*1\r\n$3\r\nPING\r\n", "bulk string does not end in CRLF"},
	"bulk CR without LF":         {"*1\r\n$4\r\nPING\rx", "bulk string does not end in CRLF"},
	"count of 4 billion":         {"*4000000000\r\n", "invalid multibulk length"},
	"count of 2^63-1":            {"*9223372036854775807\r\n", "invalid multibulk length"},
	"count of 2^64+1":            {"*18446744073709551617\r\n$4\r\nPING\r\n", "invalid multibulk length"},
	"count of 10^19-1":           {"*9999999999999999999\r\n", "invalid multibulk length"},
	"count of minus 10^20":       {"*-100000000000000000000\r\n", "invalid multibulk length"},
	"count one too many":         {"*1025\r\n", "invalid multibulk length"},
	"count not a number":         {"*x\r\n", "invalid multibulk length"},
	"count missing":              {"*\r\n", "invalid multibulk length"},
	"count minus nothing":        {"*-\r\n", "invalid multibulk length"},
	"count minus zero":           {"*-0\r\n", "invalid multibulk length"},
	"count with LF only":         {"*1\n$4\nPING\n", "invalid multibulk length"},
	"count CR without LF":        {"*1\rx", "invalid multibulk length"},
	"count without end":          {"*" + strings.Repeat("1", 100), "too big mbulk count string"},
	"not a bulk":                 {"*1\r\n:1\r\n", "expected '$', got ':'"},
	"not even text":              {"*1\r\n\x00", "expected '$', got '?'"},
	"array in an array":          {"*1\r\n*1\r\n$1\r\na\r\n", "expected '$', got '*'"},
	"endless line":               {strings.Repeat("x", 4<<10), "too big inline request"},
	"endless blanks":             {strings.Repeat(" ", 8<<10), "too big inline request"},
	"inline with 1025 words":     {strings.Repeat("x ", 1025) + "\n", "invalid multibulk length"},
	"open double quote":          {"ECHO \"a\n", "unbalanced quotes in request"},
	"open single quote":          {"ECHO 'a\n", "unbalanced quotes in request"},
	"open escape":                {"ECHO \"a\\\n", "unbalanced quotes in request"},
	"word behind a quote":        {"ECHO \"a\"b\n", "unbalanced quotes in request"},
	"word behind a single quote": {"ECHO 'a'b\n", "unbalanced quotes in request"},
	"HTTP POST":                  {"POST / HTTP/1.1\r\nHost: x\r\n", "HTTP request on a RESP port: its first line"},
	"HTTP GET":                   {"GET /page HTTP/1.1\r\nHost: x\r\n", "HTTP request on a RESP port: its first line"},
	"HTTP POST of Redis":         {"POST /\r\n", "HTTP request on a RESP port"},
	"HTTP header":                {"host: localhost\r\n", "HTTP request on a RESP port"},
	"many large arguments": {
		"*1000\r\n" + strings.Repeat("$65536\r\n"+strings.Repeat("x", 65536)+"\r\n", 17), "too big command",
	},
}
