package commands

import (
	"bytes"
	"testing"
	"unicode/utf8"

	"github.com/weir-project/weir/internal/quote"
	"github.com/weir-project/weir/server/resp"
)

// FuzzParseCommand sends commands to a session on a real table, one a line. The session must never panic, and must
// send one reply to each command.
func FuzzParseCommand(f *testing.F) {
	for _, test := range argumentErrors {
		f.Add([]byte(test.send))
	}
	each(newCommandTable(families()...).all, func(cmd *command) {
		f.Add([]byte(cmd.usage()))
		for _, e := range cmd.shown {
			f.Add([]byte("MULTI\n" + e.send + "\nEXEC\n" + e.send))
		}
	})
	f.Add([]byte("HELLO 3\nCOMMAND\nCOMMAND DOCS\nINFO all\nCLIENT LIST\nKEYS *"))
	f.Fuzz(func(t *testing.T, script []byte) {
		srv := newTestServer(t, Config{})
		c := srv.client(t)
		for line := range bytes.Lines(script) {
			args := bytes.Split(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
			if len(args) > resp.MaxArgs || manyReplies(c.sess, args) {
				continue
			}
			c.sess.Do(args)
			c.sess.DecidePending()
			_, rest, err := readReply(string(c.wire.Out))
			if err != nil || rest != "" {
				t.Fatalf("%q answered %q (%v)", args, c.wire.Out, err)
			}
			c.wire.Truncate(0)
		}
		c.sess.Close()
		if n := srv.SlowPath.Load() + srv.Events.Listeners.Load(); n != 0 {
			t.Fatalf("%d active sessions or listeners remain", n)
		}
		srv.Running.Wait()
	})
}

// manyReplies reports whether a command waits, or sends another number of replies than one.
func manyReplies(s *Session, args [][]byte) bool {
	cmd, _ := s.srv.table.resolve(args)
	if cmd == nil {
		return false
	}
	switch cmd.Full {
	case "subscribe", "psubscribe", "unsubscribe", "punsubscribe", "client|reply", "client|pause":
		return true
	}
	return false
}

// FuzzErrorText checks that any input gives an error of one line.
func FuzzErrorText(f *testing.F) {
	f.Add([]byte("a\r\nb"), 3)
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		for _, text := range []string{quote.Text(b), quote.Printable(b, max(n, 0)),
			unknownCommand([][]byte{b, b, b}).Error()} {
			if bytes.ContainsAny([]byte(text), "\r\n\x00") {
				t.Fatalf("%q", text)
			}
		}
		if !utf8.ValidString(quote.Text(b)) {
			t.Fatalf("%q", quote.Text(b))
		}
	})
}
