package clienttest

import (
	"bufio"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"
)

// judge is a proxy before a real Redis. It answers DEBUG CLOCK as weir does with a test clock. A library sends the same
// calls to the judge and to weir, and must get the same answers. The scripts of the library run unchanged in Redis'
// own Lua. judge.lua precedes each script: it replaces the commands that depend on the time, and keeps the expiries.
type judge struct {
	socket string
	addr   string

	mu    sync.Mutex
	nowUs int64
	texts map[string]string // the scripts that clients have sent, by SHA-1
}

//go:embed judge.lua
var judgeLua string

func startJudge(t *testing.T, nowMs int64) *judge {
	t.Helper()
	j := &judge{socket: startRedis(t), nowUs: nowMs * 1000, texts: make(map[string]string)}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var conns sync.WaitGroup
	t.Cleanup(func() {
		_ = listener.Close()
		conns.Wait()
	})
	j.addr = listener.Addr().String()
	conns.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			stop := make(chan struct{})
			conns.Go(func() {
				defer close(stop)
				j.serve(c)
			})
			conns.Go(func() {
				select {
				case <-t.Context().Done(): // shortly before the cleanups run
				case <-stop:
				}
				_ = c.Close()
			})
		}
	})
	return j
}

// serve answers one client until it disconnects.
func (j *judge) serve(c net.Conn) {
	up, err := net.Dial("unix", j.socket)
	if err != nil {
		return
	}
	defer func() { _ = up.Close() }()
	upstream := bufio.NewReader(up)
	ask := func(args ...string) []byte {
		out := redcon.AppendArray(nil, len(args))
		for _, a := range args {
			out = redcon.AppendBulkString(out, a)
		}
		if _, err := up.Write(out); err != nil {
			return nil
		}
		return readRaw(upstream)
	}
	var queue [][]string // of a transaction
	multi := false
	for in := redcon.NewReader(c); ; {
		cmd, err := in.ReadCommand()
		if err != nil {
			return
		}
		args := make([]string, len(cmd.Args))
		for i, a := range cmd.Args {
			args[i] = string(a)
		}
		var reply []byte
		switch name := strings.ToUpper(args[0]); {
		case name == "MULTI":
			multi, reply = true, redcon.AppendOK(nil)
		case name == "EXEC":
			reply = redcon.AppendArray(nil, len(queue))
			for _, q := range queue {
				reply = append(reply, j.answer(q, ask)...)
			}
			multi, queue = false, nil
		case multi:
			queue, reply = append(queue, args), redcon.AppendString(nil, "QUEUED")
		default:
			reply = j.answer(args, ask)
		}
		if _, err := c.Write(reply); err != nil {
			return
		}
	}
}

// passed are the commands without keys, which go to Redis unchanged.
var passed = []string{"PING", "ECHO", "CLIENT", "INFO", "COMMAND", "SELECT", "CONFIG", "QUIT", "FLUSHALL",
	"FLUSHDB", "CLUSTER", "ROLE"}

func (j *judge) answer(args []string, ask func(...string) []byte) []byte {
	name := strings.ToUpper(args[0])
	switch {
	case name == "HELLO":
		return redcon.AppendError(nil, "ERR unknown command 'HELLO'") // so that clients use RESP2
	case name == "DEBUG" && len(args) > 3:
		return j.clock(args[2:])
	case name == "SCRIPT" && strings.EqualFold(args[1], "LOAD"):
		return redcon.AppendBulkString(nil, j.learn(args[2]))
	case name == "SCRIPT" && strings.EqualFold(args[1], "EXISTS"):
		reply := redcon.AppendArray(nil, len(args)-2)
		for _, sum := range args[2:] {
			_, known := j.text(sum)
			reply = redcon.AppendInt(reply, map[bool]int64{true: 1}[known])
		}
		return reply
	case name == "SCRIPT":
		return redcon.AppendOK(nil)
	case slices.Contains(passed, name):
		return ask(args...)
	case name == "EVAL":
		j.learn(args[1])
		return ask(j.eval(args[1], args[2:])...)
	case name == "EVALSHA":
		text, known := j.text(args[1])
		if !known {
			return redcon.AppendError(nil, "NOSCRIPT No matching script. Please use EVAL.")
		}
		return ask(j.eval(text, args[2:])...)
	}
	return ask(j.eval("return redis.call(unpack(ARGV))", append([]string{"0"}, args...))...)
}

func (j *judge) eval(text string, args []string) []string {
	if strings.HasPrefix(text, "#!lua flags=allow-key-locking\n") { // a flag of Upstash's own, which Redis refuses
		text = "--" + text
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return append(append([]string{"EVAL", judgeLua + text}, args...), strconv.FormatInt(j.nowUs, 10))
}

func (j *judge) learn(text string) (sum string) {
	raw := sha1.Sum([]byte(text))
	sum = hex.EncodeToString(raw[:])
	j.mu.Lock()
	defer j.mu.Unlock()
	j.texts[sum] = text
	return sum
}

func (j *judge) text(sum string) (string, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	text, ok := j.texts[strings.ToLower(sum)]
	return text, ok
}

// clock executes DEBUG CLOCK SET ms and DEBUG CLOCK ADVANCE ms [us].
func (j *judge) clock(args []string) []byte {
	j.mu.Lock()
	defer j.mu.Unlock()
	n, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil {
		return redcon.AppendError(nil, "ERR "+err.Error())
	}
	if strings.EqualFold(args[0], "SET") {
		j.nowUs = n * 1000
		return redcon.AppendOK(nil)
	}
	j.nowUs += n * 1000
	if len(args) > 2 {
		us, _ := strconv.ParseInt(args[2], 10, 64)
		j.nowUs += us
	}
	return redcon.AppendOK(nil)
}

// readRaw reads the bytes of one reply.
func readRaw(r *bufio.Reader) []byte {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return nil
	}
	n, _ := strconv.Atoi(string(line[1 : len(line)-2]))
	switch {
	case line[0] == '$' && n >= 0:
		body := make([]byte, n+2)
		for read := 0; read < len(body); {
			k, err := r.Read(body[read:])
			if err != nil {
				return nil
			}
			read += k
		}
		line = append(line, body...)
	case line[0] == '*':
		for range n {
			line = append(line, readRaw(r)...)
		}
	}
	return line
}

// twins starts a weir with args and a judge whose clocks show the same time.
func twins(t *testing.T, args ...string) (weirAddr, judgeAddr string) {
	t.Helper()
	w := startWeir(t, args...)
	c, err := net.Dial("tcp", w.addr)
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	replies := bufio.NewReader(c)
	ask := func(line string) string {
		_, err := c.Write([]byte(line + "\r\n"))
		require.NoError(t, err)
		return strings.TrimSpace(string(readRaw(replies)))
	}
	nowMs, err := strconv.ParseInt(strings.TrimPrefix(ask("DEBUG CLOCK GET"), ":"), 10, 64)
	require.NoError(t, err)
	nowMs++ // weir's clock started within a millisecond, and cannot be set back to its beginning
	require.Equal(t, "+OK", ask(fmt.Sprint("DEBUG CLOCK SET ", nowMs)))
	return w.addr, startJudge(t, nowMs).addr
}
