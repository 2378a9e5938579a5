package connlimit

import (
	"container/list"
	"net/netip"

	"github.com/weir-project/weir/internal/clientaddr"
)

// SourceOf returns the source of a connection from host:port: an IPv4 address or an IPv6 network. The zero Addr stands
// for any other address, which is on this machine.
func SourceOf(remote string) netip.Addr {
	from, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	ip := clientaddr.Plain(from.Addr())
	if ip.Is6() {
		network, _ := ip.Prefix(clientaddr.BitsV6) // the only error is too many bits
		return network.Addr()
	}
	return ip
}

// source is an address or network with connections in a table. A nil *source has no connections. Table.mu guards the
// fields.
type source struct {
	addr  netip.Addr
	open  int              // all of its connections, including busy ones
	slots [kinds]list.List // of *Slot, oldest first: those that can be evicted
	rank  [kinds]int       // index in Table.ranked
}

// unranked is the rank of a source without connections of a kind.
const unranked = -1

func (s *source) total() int {
	if s == nil {
		return 0
	}
	return s.open
}

func (s *source) count(k kind) int {
	if s == nil {
		return 0
	}
	return s.slots[k].Len()
}

// oldest returns the slot that has been of a kind for longest, or nil.
func (s *source) oldest(k kind) *Slot {
	if s.count(k) == 0 {
		return nil
	}
	return s.slots[k].Front().Value.(*Slot)
}

// victim returns the slot that a new connection of the source itself takes over.
func (s *source) victim() *Slot {
	if silent := s.oldest(unproven); silent != nil {
		return silent
	}
	return s.oldest(idle)
}

// ranking is a heap (container/heap) of the sources that have connections of a kind. Its first source has the most
// connections, and is the oldest among equals.
type ranking struct {
	kind    kind
	sources []*source
}

// heaviest returns the source with the most connections, or nil. own is the source of the new connection. It wins a
// tie, because it is about to have one connection more.
func (r *ranking) heaviest(own *source) *source {
	if len(r.sources) == 0 {
		return nil
	}
	if first := r.sources[0]; own.count(r.kind) < first.count(r.kind) {
		return first
	}
	return own
}

func (r *ranking) Len() int { return len(r.sources) }

func (r *ranking) Less(i, j int) bool {
	a, b := r.sources[i], r.sources[j]
	if n, m := a.count(r.kind), b.count(r.kind); n != m {
		return n > m
	}
	return a.oldest(r.kind).since < b.oldest(r.kind).since
}

func (r *ranking) Swap(i, j int) {
	s := r.sources
	s[i], s[j] = s[j], s[i]
	s[i].rank[r.kind], s[j].rank[r.kind] = i, j
}

// Push and Pop implement heap.Interface.
func (r *ranking) Push(x any) {
	s := x.(*source)
	s.rank[r.kind] = len(r.sources)
	r.sources = append(r.sources, s)
}

func (r *ranking) Pop() any {
	last := len(r.sources) - 1
	s := r.sources[last]
	r.sources[last] = nil
	r.sources = r.sources[:last]
	s.rank[r.kind] = unranked
	return s
}
