package server

import (
	"github.com/tidwall/redcon"

	"github.com/weir-project/weir/server/resp"
)

// deliver pushes a message, on another goroutine, in the protocol of the session.
func (s *session) deliver(t topic, channel string, payload []byte) {
	proto := s.about.protocol()
	var buf []byte
	if t.pattern {
		buf = resp.Aggregate(buf, proto, '>', 4, 4)
		buf = redcon.AppendBulkString(buf, "pmessage")
		buf = redcon.AppendBulkString(buf, t.name)
	} else {
		buf = resp.Aggregate(buf, proto, '>', 3, 3)
		buf = redcon.AppendBulkString(buf, "message")
	}
	buf = redcon.AppendBulkString(buf, channel)
	s.client.Push(redcon.AppendBulk(buf, payload))
}

// show pushes a command to a session that monitors.
func (s *session) show(line []byte) { s.client.Push(line) }
