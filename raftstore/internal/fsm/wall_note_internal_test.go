package fsm

import (
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/raftstore/wire"
)

func tick(t *testing.T, m *testMachine, at engine.Stamp, body string) {
	data := append(make([]byte, wire.HeaderLen), body...)
	wire.Header{Kind: wire.Tick, Term: 1, At: at}.Put(data)
	m.index++
	require.Nil(t, m.Apply(&raft.Log{Index: m.index, Term: 1, Type: raft.LogCommand, Data: data}))
}

// TestNotesOfWallClocks checks how long a recorded note of wall clocks is valid. It must describe the clocks at the
// last entry, and an invalid note is ignored.
func TestNotesOfWallClocks(t *testing.T) {
	m := newTestMachine(t)
	noted := func() *WallNote { s, _ := m.LastArrival(); return s.CurrentWalls() }
	tick(t, m, at(0), "")
	require.Nil(t, noted(), "a tick of an older version has no note")
	tick(t, m, at(1), "no JSON")
	require.Nil(t, noted())
	tick(t, m, at(2), `{"n0":7}`)
	require.Equal(t, &WallNote{Term: 1, AtNs: at(2).NowNs, AheadNs: map[string]int64{"n0": 7}}, noted())
	tick(t, m, at(3), "")
	require.NotNil(t, noted())
	m.entry(wire.Header{Term: 1, At: at(2 + wallNoteLifetime.Milliseconds() + 1)}, bucket)
	require.Nil(t, noted(), "the note must be too old")

	tick(t, m, at(20_000), `{"n0":7}`)
	require.NotNil(t, noted())
	m.entry(wire.Header{Term: 1, At: at(19_999)}, bucket)
	require.Nil(t, noted(), "the note must end when the leader's clock went back")

	tick(t, m, at(20_001), `{"n0":7}`)
	m.index++
	void := make([]byte, wire.HeaderLen)
	wire.Header{Kind: wire.Tick, Term: 1, At: at(20_002)}.Put(void)
	require.Equal(t, errVoid, m.Apply(&raft.Log{Index: m.index, Term: 2, Type: raft.LogCommand, Data: void}))
	require.NotNil(t, noted(), "a void entry stamps nothing")
	s, _ := m.LastArrival()
	loaded, err := decodeState(s.Encode())
	require.NoError(t, err)
	require.Nil(t, loaded.Walls, "a stored state must not revive a note of another term")
	m.index++
	wire.Header{Kind: wire.Tick, Term: 2, At: at(20_003)}.Put(void)
	require.Nil(t, m.Apply(&raft.Log{Index: m.index, Term: 2, Type: raft.LogCommand, Data: void}))
	require.Nil(t, noted(), "the note must end when another leader stamps an entry")
	require.Empty(t, m.fatal)
}
