package bench

import (
	"bytes"
	"fmt"
	"math"
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

// golden distributes the parts of a load evenly over its requests. Multiples of the golden ratio's fraction fill the
// interval from 0 to 1 without clusters.
const golden = 0.6180339887498949

// pipeline encodes the requests of a link.
func (s sender) pipeline(link int) *requests {
	r := &requests{}
	parts := s.load.parts()
	for i := range s.load.Pipeline {
		at := float64(link*s.load.Pipeline+i) * golden
		s.add(r, parts, partAt(parts, at-float64(int(at))))
	}
	return r
}

// partAt returns the part whose share of the interval from 0 to 1 contains a number.
func partAt(parts []part, at float64) int {
	for i, p := range parts {
		if at -= p.share; at < 0 {
			return i
		}
	}
	return len(parts) - 1
}

func (s sender) add(r *requests, parts []part, i int) {
	p, command := parts[i], s.commands[parts[i].workload]
	prefix := prefixOf(i)
	key := s.load.key(prefix, 0)
	one := encodeRequest(command.For(key, p.cost))
	keys := s.load.Keys
	switch {
	case p.workload == Denied:
		keys = min(keys, hotKeys)
	case s.load.Distribution == AllNew:
		keys = math.MaxInt
	}
	r.slots = append(r.slots, slot{
		end:    len(r.encoded) + bytes.Index(one, []byte(key)) + len(key),
		digits: s.load.digitsNeeded(len(prefix)), keys: keys,
	})
	r.encoded = append(r.encoded, one...)
	r.expects = append(r.expects, command.Reply)
}

// prefixOf returns the prefix of the i-th part's keys. It is as long as keyPrefix, which is the prefix of the first
// part.
func prefixOf(i int) string {
	if i == 0 {
		return keyPrefix
	}
	return "ke" + strconv.Itoa(i) + ":"
}

// key returns the key of a number.
func (l Load) key(prefix string, number int) string {
	return fmt.Sprintf("%s%0*d", prefix, l.keyBytes()-len(prefix), number)
}

func (l Load) keyBytes() int {
	if l.KeyBytes > 0 {
		return l.KeyBytes
	}
	return usualKeyBytes
}

// digitsNeeded returns how many digits of a key can change.
func (l Load) digitsNeeded(prefix int) int {
	if l.Distribution == AllNew {
		return l.keyBytes() - prefix
	}
	return len(strconv.Itoa(max(l.Keys-1, 0)))
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
