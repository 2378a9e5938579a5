package bench

import (
	"bytes"
	"fmt"
	"strconv"
)

// keyDigits is the number of digits at the end of a key, the same as in redis-benchmark.
const keyDigits = 12

// requests are the requests of one pipeline, encoded once. Only the digits of keys change between uses, so that sending
// is cheap compared with answering.
type requests struct {
	encoded []byte
	slots   []slot
	expects []Reply // one for each request
}

// slot is the position of a key's digits in a request.
type slot struct {
	end    int // after the last digit
	digits int // how many of them a key can need
	keys   int // keys are below this number
}

// sender makes the pipelines of a load for one target.
type sender struct {
	load     Load
	commands map[Workload]Command
}

// pipeline encodes the requests of a link.
func (s sender) pipeline() *requests {
	r, command, keys := &requests{}, s.commands[s.load.Workload], s.load.Keys
	if s.load.Workload == Denied {
		keys = min(keys, hotKeys)
	}
	key := s.load.key(0)
	one := encodeRequest(command.For(key))
	for range s.load.Pipeline {
		r.slots = append(r.slots, slot{
			end:    len(r.encoded) + bytes.Index(one, []byte(key)) + len(key),
			digits: len(strconv.Itoa(max(s.load.Keys-1, 0))), keys: keys,
		})
		r.encoded = append(r.encoded, one...)
		r.expects = append(r.expects, command.Reply)
	}
	return r
}

// key returns the key of a number.
func (l Load) key(number int) string {
	return fmt.Sprintf("%s%0*d", keyPrefix, l.keyBytes()-len(keyPrefix), number)
}

func (l Load) keyBytes() int {
	if l.KeyBytes > 0 {
		return l.KeyBytes
	}
	return usualKeyBytes
}

// setKey sets the key of the i-th request.
func (r *requests) setKey(i, number int) {
	s := r.slots[i]
	if number >= s.keys {
		number %= s.keys
	}
	digits := r.encoded[s.end-s.digits : s.end]
	for d := len(digits) - 1; d >= 0; d-- {
		digits[d] = byte('0' + number%10)
		number /= 10
	}
}

// encodeRequest encodes a request as clients do: an array of bulk strings.
func encodeRequest(args []string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, arg := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(arg), arg)
	}
	return b.Bytes()
}
