package chaos

import (
	"bufio"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/clustertest/ledger"
)

// fake is a small limiter server that is correct by default and wrong on demand. With it a test distinguishes a correct
// server from a faulty one without a process.
type fake struct {
	mistake mistake
	start   time.Time

	mu      sync.Mutex
	used    map[string]int64
	answers map[string][]any     // by key and ID
	tat     map[string]time.Time // when each token bucket is full again
	log     map[string][]time.Time
	held    map[string]bool
	calls   int
	books   *fakeBooks
	past    map[string][]was // by key, at each change
}

// mistake is one kind of fault, made about every mistakeEvery operations.
type mistake int

const (
	none            mistake = iota
	forget                  // answers a grant and does not count it
	chargeTwice             // counts a grant twice
	idIgnored               // runs a repeated command again
	stale                   // reports the units left before the operation
	clockJumps              // a bucket and a window are full again
	denyAll                 // grants nothing
	extraSlot               // grants one lease more than the limit has slots
	leaseDropped            // frees the slots of every holder
	partOfCheck             // a check takes from its first policy only
	commitAgain             // a commit takes more units than it says
	cancelForgotten         // a cancelled hold keeps its units
	holdsEndEarly           // holds expire after a tenth of their time
	halfChange              // a change of a policy keeps the old second limit
	resetForgotten          // a change of a policy keeps the usage, although RESET was given
	slotKept                // a released slot stays occupied
	denySlidings            // denies every sliding window
	repeatRefused           // answers a repeated command with an error
	readsBehind             // reads a state that is some operations old
	ageUnderstated          // reports an age under READONLY that is too low
)

const mistakeEvery = 20

func startFake(t *testing.T, m mistake) string {
	t.Helper()
	f := &fake{mistake: m, start: time.Now(), used: map[string]int64{}, answers: map[string][]any{},
		tat: map[string]time.Time{}, log: map[string][]time.Time{}, held: map[string]bool{}, past: map[string][]was{}}
	f.books = newFakeBooks(f)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			all.Go(func() { f.serve(c) })
		}
	})
	t.Cleanup(func() { ln.Close(); all.Wait() })
	return ln.Addr().String()
}

func (f *fake) serve(c net.Conn) {
	defer c.Close()
	r, readOnly := bufio.NewReader(c), false
	for {
		request, err := readReply(r) // a request is an array, like a reply
		if err != nil {
			return
		}
		var args []string
		for _, arg := range request.([]any) {
			args = append(args, arg.(string))
		}
		var reply any = "OK"
		switch {
		case args[0] == "READONLY":
			readOnly = true
		case args[0] == "RL.INSPECT", args[0] == "EXISTS":
			reply = f.read(args[0], args[1], readOnly)
		default:
			reply = f.do(args)
		}
		if _, err := c.Write(appendReply(nil, reply)); err != nil {
			return
		}
	}
}

func appendReply(b []byte, reply any) []byte {
	switch v := reply.(type) {
	case nil:
		return append(b, "$-1\r\n"...)
	case string:
		return fmt.Appendf(b, "$%d\r\n%s\r\n", len(v), v)
	case int64:
		return fmt.Appendf(b, ":%d\r\n", v)
	case ErrorReply:
		return fmt.Appendf(b, "-%s\r\n", v)
	case []any:
		b = fmt.Appendf(b, "*%d\r\n", len(v))
		for _, item := range v {
			b = appendReply(b, item)
		}
	}
	return b
}

func (f *fake) do(args []string) any {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	if reply := f.books.do(args); reply != nil {
		return reply
	}
	key, id, units := args[1], option(args, "ID"), int64(1)
	if cost := option(args, "COST"); cost != "" {
		units, _ = strconv.ParseInt(cost, 10, 64)
	}
	if done, ok := f.answers[key+" "+id]; ok && id != "" && !f.errs(idIgnored) {
		if f.mistake == repeatRefused {
			return ErrorReply("ERR unknown ID")
		}
		return done[0]
	}
	reply := f.decide(args, key, units)
	if id != "" {
		f.answers[key+" "+id] = []any{reply}
	}
	return reply
}

// errs reports whether this operation makes mistake m.
func (f *fake) errs(m mistake) bool { return f.mistake == m && f.calls%mistakeEvery == 0 }

func (f *fake) decide(args []string, key string, units int64) any {
	switch args[0] {
	case "RL.FIXED":
		limit, _ := strconv.ParseInt(args[3], 10, 64)
		return f.quota(key,
			ledger.Op{Verb: ledger.Take, Max: limit, Units: units, Partial: slices.Contains(args, "PARTIAL")})
	case "RL.REFUND":
		n, _ := strconv.ParseInt(args[2], 10, 64)
		return f.quota(key, ledger.Op{Verb: ledger.Refund, Max: mixedMax, Units: n})
	case "RL.RESET":
		return f.quota(key, ledger.Op{Verb: ledger.Reset, Max: mixedMax})
	case "RL.TOKENBUCKET":
		return f.bucket(key)
	case "RL.SLIDING":
		return f.sliding(key, units)
	case "RL.ACQUIRE":
		return f.acquire(option(args, "HOLDER"))
	case "RL.RELEASE":
		was := f.held[args[2]]
		if f.mistake != slotKept {
			delete(f.held, args[2])
		}
		return map[bool]int64{false: 0, true: 1}[was]
	}
	return ErrorReply("ERR unknown command")
}

func (f *fake) quota(key string, op ledger.Op) any {
	used, answer := ledger.Count(f.used[key], &op)
	granted, left, allowed := answer.Allowed, answer.Left, answer.Allowed
	switch {
	case f.mistake == denyAll && op.Verb == ledger.Take:
		return five(0, op.Max)
	case granted > 0 && f.errs(forget):
		used = f.used[key]
	case granted > 0 && f.errs(chargeTwice):
		used += granted
	case f.errs(stale):
		left = op.Max - f.used[key]
	}
	f.used[key] = used
	f.past[key] = append(f.past[key], was{time.Now(), op.Max, used})
	if op.Verb != ledger.Take {
		return left
	}
	if granted > 0 && !op.Partial {
		allowed = 1
	}
	return five(allowed, left)
}

func five(allowed, left int64) []any { return []any{allowed, left, int64(0), int64(0), int64(0)} }

func (f *fake) bucket(key string) any {
	now := time.Now()
	if f.errs(clockJumps) || f.tat[key].Before(now) {
		f.tat[key] = now
	}
	next := f.tat[key].Add(time.Second / bucketPerSecond)
	if f.mistake == denyAll || next.Sub(now) > bucketBurst*time.Second/bucketPerSecond {
		return five(0, 0)
	}
	f.tat[key] = next
	return five(1, 0)
}

func (f *fake) sliding(key string, units int64) any {
	now := time.Now()
	if f.errs(clockJumps) {
		f.log[key] = nil
	}
	for len(f.log[key]) > 0 && now.Sub(f.log[key][0]) >= slidingWindow {
		f.log[key] = f.log[key][1:]
	}
	if f.mistake == denyAll || f.mistake == denySlidings || int64(len(f.log[key]))+units > slidingMax {
		return five(0, 0)
	}
	for range units {
		f.log[key] = append(f.log[key], now)
	}
	return five(1, 0)
}

func (f *fake) acquire(holder string) any {
	slots := leaseSlots
	if f.mistake == extraSlot {
		slots++
	}
	if f.errs(leaseDropped) {
		clear(f.held)
	}
	if !f.held[holder] && len(f.held) >= slots || f.mistake == denyAll {
		return five(0, 0)
	}
	f.held[holder] = true
	return five(1, 0)
}

// option returns the argument that follows a word, or "" without one.
func option(args []string, word string) string {
	for i := 2; i+1 < len(args); i++ {
		if args[i] == word {
			return args[i+1]
		}
	}
	return ""
}
