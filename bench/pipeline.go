package bench

import (
	"bytes"
	"fmt"
)

// keyDigits is how many digits end a key: as many as redis-benchmark writes.
const keyDigits = 12

// pipeline is some requests of one command, encoded once. Only the digits of the
// keys change between one use and the next, so that making requests costs next to
// nothing beside answering them.
type pipeline struct {
	requests []byte
	every    int // bytes of one request
	digits   int // where in a request those of its key begin
}

// newPipeline encodes n requests.
func newPipeline(c Command, n int) *pipeline {
	key := fmt.Sprintf("%s%0*d", keyPrefix, keyDigits, 0)
	one := encodeRequest(c.For(key))
	return &pipeline{
		requests: bytes.Repeat(one, n), every: len(one),
		digits: bytes.Index(one, []byte(key)) + len(keyPrefix),
	}
}

// setKey makes the i-th request one for a key.
func (p *pipeline) setKey(i, key int) {
	at := i*p.every + p.digits
	for d := at + keyDigits - 1; d >= at; d-- {
		p.requests[d] = byte('0' + key%10)
		key /= 10
	}
}

// encodeRequest writes a request as clients do: an array of bulk strings.
func encodeRequest(args []string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, arg := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(arg), arg)
	}
	return b.Bytes()
}
