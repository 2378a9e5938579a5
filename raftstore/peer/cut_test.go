package peer

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var errCut = errors.New("cut")

// cutConn closes the connection after a number of bytes was read or written.
type cutConn struct {
	net.Conn
	reads, writes int // the bytes left; negative for no limit
}

func (c *cutConn) Read(b []byte) (int, error) {
	if c.reads == 0 {
		return 0, errors.Join(errCut, c.Close())
	}
	if c.reads > 0 {
		b = b[:min(len(b), c.reads)]
	}
	n, err := c.Conn.Read(b)
	if c.reads > 0 {
		c.reads -= n
	}
	return n, err
}

func (c *cutConn) Write(b []byte) (int, error) {
	if c.writes < 0 || len(b) <= c.writes {
		n, err := c.Conn.Write(b)
		if c.writes > 0 {
			c.writes -= n
		}
		return n, err
	}
	n, err := c.Conn.Write(b[:c.writes])
	return n, errors.Join(errCut, err, c.Close())
}

// welcomes returns the judge of an acceptor that accepts every node.
func welcomes(self Identity) func(greeting) (Identity, error) {
	return func(greeting) (Identity, error) { return self, nil }
}

// handshake runs both sides over a connection that is cut on one of them.
func handshake(group uint16, cut func(dialer, acceptor *cutConn)) (dialed, accepted error) {
	near, far := net.Pipe()
	dialer, acceptor := &cutConn{near, -1, -1}, &cutConn{far, -1, -1}
	cut(dialer, acceptor)
	done := make(chan error, 1)
	go func() {
		_, err := receive(acceptor, []byte("secret"), welcomes(Identity{NodeID: "b", ClusterID: "one"}))
		done <- errors.Join(err, acceptor.Close())
	}()
	_, err := greet(dialer, []byte("secret"), newGreeting(CallService, group, Identity{NodeID: "a", ClusterID: "one"}))
	dialer.Close()
	return err, <-done
}

// TestACutHandshake cuts a handshake at each byte. Both sides must report the cut and accept no node, and neither may
// blame a secret.
func TestACutHandshake(t *testing.T) {
	for group, fields := range map[uint16]int{0: 2, 3: 4} {
		t.Run(fmt.Sprint("group ", group), func(t *testing.T) { cutHandshake(t, group, fields) })
	}
}

// cutHandshake cuts handshakes of a group. fields is the number of bytes of the group's greeting besides its head and
// the names.
func cutHandshake(t *testing.T, group uint16, fields int) {
	dialed, accepted := handshake(group, func(_, _ *cutConn) {})
	require.NoError(t, dialed)
	require.NoError(t, accepted)
	greetingLen := len(magic) + 2 + nonceLen + fields + len("a"+"one")
	sent, got := greetingLen+macLen, challengeLen+greetingLen+macLen+2
	for n := range sent {
		dialed, accepted := handshake(group, func(dialer, _ *cutConn) { dialer.writes = n })
		require.ErrorIs(t, dialed, errCut, "dialer, %d of %d bytes written", n, sent)
		require.Error(t, accepted)
		dialed, accepted = handshake(group, func(_, acceptor *cutConn) { acceptor.reads = n })
		require.ErrorIs(t, accepted, errCut, "acceptor, %d of %d bytes read", n, sent)
		require.Error(t, dialed)
		require.NotErrorIs(t, errors.Join(dialed, accepted), ErrSecret)
	}
	for n := range got {
		dialed, _ := handshake(group, func(dialer, _ *cutConn) { dialer.reads = n })
		require.ErrorIs(t, dialed, errCut, "dialer, %d of %d bytes read", n, got)
		require.NotErrorIs(t, dialed, ErrSecret)
		dialed, accepted := handshake(group, func(_, acceptor *cutConn) { acceptor.writes = n })
		require.ErrorIs(t, accepted, errCut, "acceptor, %d of %d bytes written", n, got)
		require.Error(t, dialed)
		require.NotErrorIs(t, errors.Join(dialed, accepted), ErrSecret)
	}
}

// TestFramesAtTheBounds checks that an incomplete, too short or too long frame is malformed.
func TestFramesAtTheBounds(t *testing.T) {
	want := frame{number: 1 << 63, kind: 7, payload: []byte("payload")}
	whole := appendFrame(nil, want)
	require.Equal(t, "10000000"+"0000000000000080"+"07"+hex.EncodeToString([]byte("payload")),
		hex.EncodeToString(whole))
	read := func(b []byte) (frame, error) { return readFrame(bufio.NewReader(bytes.NewReader(b))) }
	got, err := read(whole)
	require.NoError(t, err)
	require.Equal(t, want, got)
	empty := appendFrame(nil, frame{number: 1, kind: 7})
	for _, b := range [][]byte{whole, empty} {
		for n := range b {
			_, err := read(b[:n])
			require.True(t, errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF), "%d bytes: %v", n, err)
		}
	}
	got, err = read(empty)
	require.NoError(t, err)
	require.Empty(t, got.payload)
	empty[0]--
	_, err = read(empty)
	require.ErrorIs(t, err, errFrame, "a frame shorter than its head must be malformed")

	longest := appendFrame(nil, frame{payload: make([]byte, MaxPayload)})
	_, err = read(longest)
	require.NoError(t, err)
	longest[0]++
	_, err = read(append(longest, 0))
	require.ErrorIs(t, err, errFrame)
}

func TestGreetingsAtTheBounds(t *testing.T) {
	read := func(g greeting) error {
		_, _, err := readGreeting(bytes.NewReader(g.encode()))
		return err
	}
	name := func(n int) string { return strings.Repeat("n", n) }
	require.NoError(t, read(greeting{version: oldestProtocol, self: Identity{name(MaxNameLen), name(MaxNameLen)}}))
	require.NoError(t, read(greeting{version: 255}))
	require.ErrorIs(t, read(greeting{version: oldestProtocol - 1}), ErrVersion)
	require.ErrorIs(t, read(greeting{version: oldestProtocol, self: Identity{NodeID: name(MaxNameLen + 1)}}),
		ErrNotWeir)
	cluster := Identity{ClusterID: name(MaxNameLen + 1)}
	require.ErrorIs(t, read(greeting{version: oldestProtocol, self: cluster}), ErrNotWeir)

	other := (&greeting{version: oldestProtocol}).encode()
	other[0]++
	_, _, err := readGreeting(bytes.NewReader(other))
	require.ErrorIs(t, err, ErrNotWeir, "another protocol must be refused")
	empty := strings.Repeat("\x00", MaxNameLen+1) // this would pass for empty names
	require.ErrorIs(t, read(greeting{version: oldestProtocol, self: Identity{NodeID: empty}}), ErrNotWeir)

	sent := newGreeting(RaftService, 0, Identity{"a", "one"})
	got, raw, err := readGreeting(bytes.NewReader(append(sent.encode(), "more"...)))
	require.NoError(t, err)
	require.Equal(t, sent, got)
	require.Equal(t, sent.encode(), raw)

	challenge := append(append([]byte(magic), oldestProtocol), make([]byte, nonceLen)...)
	_, err = readChallenge(bytes.NewReader(challenge))
	require.NoError(t, err)
	challenge[len(magic)]--
	_, err = readChallenge(bytes.NewReader(challenge))
	require.ErrorIs(t, err, ErrVersion)
	challenge[0]++
	_, err = readChallenge(bytes.NewReader(challenge))
	require.ErrorIs(t, err, ErrNotWeir)
}

// TestProof checks that the proof covers all messages, their sender and their boundaries.
func TestProof(t *testing.T) {
	proofs := map[string]string{}
	for name, c := range map[string][4]string{
		"as it is":              {"secret", "dialer", "greeting", "challenge"},
		"another secret":        {"guess", "dialer", "greeting", "challenge"},
		"another role":          {"secret", "acceptor", "greeting", "challenge"},
		"another greeting":      {"secret", "dialer", "Greeting", "challenge"},
		"another challenge":     {"secret", "dialer", "greeting", "Challenge"},
		"another border":        {"secret", "dialer", "greetingc", "hallenge"},
		"a role that is longer": {"secret", "dialerg", "reeting", "challenge"},
	} {
		p := string(proof([]byte(c[0]), c[1], []byte(c[2]), []byte(c[3])))
		require.Len(t, p, macLen)
		require.Empty(t, proofs[p], name)
		proofs[p] = name
	}
	golden := proof([]byte("secret"), "dialer", []byte("greeting"), []byte("challenge"))
	require.Equal(t, "85be1ded1a790249e16f3c4d9a0afe72125a5282589b7b3669b03d6ab4b8ee00", hex.EncodeToString(golden),
		"nodes of other versions must compute the same proof")
}

// TestASideWithoutTheSecretIsNoNode checks that a side without the secret is never accepted as a node.
func TestASideWithoutTheSecretIsNoNode(t *testing.T) {
	for name, secret := range map[string][]byte{"another secret": []byte("guess"), "none": nil} {
		near, far := net.Pipe()
		go func() {
			defer far.Close()
			_, heard, err := readGreeting(far)
			if err != nil {
				return
			}
			mine := newGreeting(CallService, 0, Identity{NodeID: "b", ClusterID: "one"})
			challenge := append(append([]byte(magic), protocolVersion), mine.nonce[:]...)
			_, _ = far.Write(challenge)
			_, _ = io.ReadFull(far, make([]byte, macLen))
			said := mine.encode()
			_, _ = far.Write(append(said, proof(secret, "acceptor", append(heard, challenge...), said)...))
			_ = writeVerdict(far, nil)
		}()
		who, err := greet(near, []byte("secret"), newGreeting(CallService, 0, Identity{NodeID: "a", ClusterID: "one"}))
		require.ErrorIs(t, err, ErrSecret, name)
		require.Empty(t, who)
		near.Close()
	}
}

func TestVerdicts(t *testing.T) {
	for _, n := range []int{0, 1, maxRefusalLen - 1, maxRefusalLen, maxRefusalLen + 1, 1 << 17} {
		var b bytes.Buffer
		require.NoError(t, writeVerdict(&b, errors.New(strings.Repeat("v", n))))
		require.Equal(t, 2+min(n, maxRefusalLen), b.Len())
		err := readVerdict(&b)
		if n == 0 {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, ErrRefused)
		require.Equal(t, min(n, maxRefusalLen), strings.Count(err.Error(), "v"))
	}
	_, _, err := readGreeting(strings.NewReader(""))
	require.ErrorIs(t, err, io.EOF)
	require.ErrorIs(t, readVerdict(strings.NewReader("\x05\x00abcd")), io.ErrUnexpectedEOF,
		"a partial refusal must not count as one")
}
