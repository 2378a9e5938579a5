package client

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/weir-project/weir/engine"
)

// Event is an event that weir wrote under a policy with NOTIFY or RECORD. It has the same Cursor on every node.
type Event struct {
	Cursor uint64
	At     time.Time
	Kind   string // "threshold", "settled", "expired" or "lockout"
	Policy string
	Key    string
	ID     string // the hold, or the ID of the request; empty: none
	Share  int64  // the threshold that was reached, in percent; 0: the event reports none
	Amount int64  // units of the request, the cost of the hold that no earlier event told, or strikes
	Used   int64  // units of the limit that are used after the decision
	Limit  int64
}

// Events returns up to n events (1 to 10000) after the last one that the program has, the oldest first. It needs Cursor
// and At of last; the zero Event is before the first event ever. If weir no longer has all of them, or last comes from
// another log, such as that of before a restore, Events returns ErrRefused with a text that begins with EVENTSGONE and
// says where to go on. Without At it compares the cursor alone. With several Raft groups it reads the events of the
// first one.
func (c *Client) Events(ctx context.Context, last Event, n int) ([]Event, error) {
	if last.Cursor > engine.MaxUnits {
		return nil, fmt.Errorf("%w: no event has a cursor above 2^53", ErrBadRequest)
	}
	after := strconv.FormatUint(last.Cursor, 10)
	if !last.At.IsZero() {
		after = fmt.Sprintf("%d-%s", last.At.UnixMilli(), after)
	}
	list, err := c.list(ctx, "RL.EVENTS", "AFTER", after, "COUNT", n)
	if err != nil {
		return nil, err
	}
	events := make([]Event, len(list))
	for i := range list {
		m, err := fieldsOf(list[i], "RL.EVENTS")
		if err != nil {
			return nil, err
		}
		events[i] = Event{
			Cursor: uint64(m.int("cursor")), At: time.UnixMilli(m.int("time_ms")), Kind: m.text("kind"),
			Policy: m.text("policy"), Key: m.text("key"), ID: m.text("id"), Share: m.int("share"),
			Amount: m.int("amount"), Used: m.int("used"), Limit: m.int("limit"),
		}
	}
	return events, nil
}
