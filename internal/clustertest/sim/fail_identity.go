package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/raftstore/peer"
)

// These are the races of identities: processes with a false identity, and late images.

const (
	// nonmemberFor is how long a process that must not become a member tries to join.
	nonmemberFor = 2 * time.Second
	// lateImageBy is the delay of an image. laterImageAfter is when the leader, which has given that image up, can send
	// another.
	lateImageBy, laterImageAfter = 5 * time.Second, 1300 * time.Millisecond
	// callJoin is the call by which a node asks to join.
	callJoin = 'j'
)

// masquerade starts one of the races of identities, with a member that is a follower.
func (s *Simulation) masquerade(kind string, h *host, rng *rand.Rand) {
	leader := s.leaderNow()
	if leader == nil || leader.host == h || s.shrinks() || !h.settled() || s.losing.Swap(true) {
		return
	}
	s.event("%s: %s", kind, h.id)
	thief := fmt.Sprint("thief", rng.IntN(1000))
	s.tasks.Go(func() {
		defer s.losing.Store(false)
		switch kind {
		case "stolen id":
			s.runNonmember(h.id, thief+":1")
		case "stolen address":
			if p := h.running(); p != nil {
				p.crash("its address is taken", 100, 0)
				s.runNonmember(thief, h.addr)
				h.start()
			}
		case "forged join":
			s.forgeJoin(leader, h)
		case "late image":
			s.lateImage(leader, h)
		}
	})
}

// runNonmember runs a process with an empty disk that must not become a member.
func (s *Simulation) runNonmember(id, addr string) {
	h := &host{sim: s, id: id, addr: addr, mem: vfs.NewCrashableMem(), clock: newClock(0, 0), lost: true}
	h.start()
	p := h.running()
	if p == nil {
		return
	}
	for began := time.Now(); !p.over() && time.Since(began) < nonmemberFor; time.Sleep(pollEvery) {
		for _, m := range p.node.Topology().Nodes {
			if m.ID == id && m.RaftAddr == addr {
				s.violation("%s became a member at %s", id, addr)
			}
		}
	}
	p.crash("a nonmember gives up", 100, 0)
}

// forgeJoin asks the leader to move a member to another address. It acts as a node that has the secret and is not that
// member.
func (s *Simulation) forgeJoin(leader *process, h *host) {
	end := s.net.attach("forger:1")
	port := peer.NewDialer(peer.HubConfig{
		Secret: []byte(secret), Logger: s.logger, Dialer: end.Dial,
	}, peer.PortConfig{
		Self: func() peer.Identity { return peer.Identity{NodeID: "forger"} }, Logger: s.logger,
	})
	client := peer.NewClient(port, leader.host.addr, "")
	ctx, cancel := context.WithTimeout(context.Background(), raceLimit)
	defer cancel()
	request, err := json.Marshal(map[string]any{
		"NodeID": h.id, "RaftAddr": "forger:1", "Format": 2, "KeepsPromises": true, "Invited": true,
	})
	if err != nil {
		s.violation("the forged request: %v", err)
	}
	if code, _, err := client.Call(ctx, callJoin, request); err == nil && code == 0 {
		s.violation("%s moved %s to another address for a node that is not it", leader.host.id, h.id)
	}
	client.Close()
	if err := port.Close(); err != nil {
		s.violation("the forger's port: %v", err)
	}
}

// lateImage lets a follower fall behind the log of the leader. The image for that follower then travels so long that
// the leader sends another, which overtakes it.
func (s *Simulation) lateImage(leader *process, h *host) {
	p := h.running()
	if p == nil {
		return
	}
	p.crash("it is to fall behind", 100, 0)
	time.Sleep(2 * raceLimit)
	leader.node.Snapshot()
	held := leader.stopAt(faults.BeforeImage, 0)
	defer held.release()
	h.start()
	if !held.within(raceLimit) {
		return
	}
	slow := s.net.link(leader.host.addr, h.addr)
	slow.longNs.Store(int64(lateImageBy))
	held.release()
	time.Sleep(laterImageAfter)
	slow.longNs.Store(0)
	time.Sleep(lateImageBy)
}
