package host

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/persistence"
)

// termAsker is a group that notes the members whose term is asked for.
type termAsker struct {
	fewServers
	asked chan string
}

func (a termAsker) AskTerm(_ context.Context, id string, _ func(context.Context) (uint64, error)) {
	a.asked <- id
}

// TestANewMemberIsAskedForItsTerm checks that a quorum round which began before this node knew the members, or their
// addresses, asks them. Nothing else would ask them again, and the round would wait until it expires.
func TestANewMemberIsAskedForItsTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := termAsker{asked: make(chan string, 4)}
		on := newTestHost(nil)
		defer on.Close()
		h := NewGroup(Options{
			NodeID: "a", Host: on, Source: persistence.SystemSource(), Logger: slog.New(slog.DiscardHandler),
		})
		p := NewPeers(h, g)
		h.Peers = p
		defer p.closeGroup()
		p.Wake([]string{"a", "b", "c"})

		servers := []raft.Server{
			{ID: "a", Address: "host-a"}, {ID: "b", Address: "host-b"}, {ID: "c", Address: "host-c"},
		}
		p.follow(servers)
		synctest.Wait()
		require.ElementsMatch(t, []string{"b", "c"}, []string{g.next(), g.next()})

		p.follow(servers)
		synctest.Wait()
		require.Empty(t, g.next(), "known members are asked only when a round begins")

		moved := slices.Clone(servers)
		moved[1].Address = "host-b2"
		p.follow(moved)
		synctest.Wait()
		require.Equal(t, "b", g.next())
	})
}

// next returns the next member that was asked, or "".
func (a termAsker) next() string {
	select {
	case id := <-a.asked:
		return id
	default:
		return ""
	}
}
