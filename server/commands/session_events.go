package commands

import (
	"github.com/tidwall/redcon"

	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/service"
)

// Deliver pushes a message, on another goroutine, in the protocol of the session.
func (s *Session) Deliver(t service.Topic, channel string, payload []byte) {
	proto := s.about.Protocol()
	var buf []byte
	if t.Pattern {
		buf = resp.Aggregate(buf, proto, '>', 4, 4)
		buf = redcon.AppendBulkString(buf, "pmessage")
		buf = redcon.AppendBulkString(buf, t.Name)
	} else {
		buf = resp.Aggregate(buf, proto, '>', 3, 3)
		buf = redcon.AppendBulkString(buf, "message")
	}
	buf = redcon.AppendBulkString(buf, channel)
	s.client.Push(redcon.AppendBulk(buf, payload))
}

// Show pushes a command to a session that monitors.
func (s *Session) Show(line []byte) { s.client.Push(line) }
