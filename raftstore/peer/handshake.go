package peer

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
)

// Errors of the handshake.
var (
	ErrNotWeir  = errors.New("the other side does not speak weir's inter-node protocol")
	ErrVersion  = errors.New("the other side speaks an inter-node protocol that is too old")
	ErrSecret   = errors.New("the other side does not know this cluster's secret")
	ErrEnded    = errors.New("the other side ended the connection during the handshake")
	ErrUnproven = errors.New("the other side ended the connection before it proved that it knows this cluster's " +
		"secret: it stopped, or the two secrets differ")
	ErrCluster  = errors.New("the other side belongs to another cluster")
	ErrSameNode = errors.New("the other side has this node's own id")
	ErrRefused  = errors.New("refused by the other side")
	ErrWrongID  = errors.New("another node answers at this address")
)

// Identity is what a node says of itself.
type Identity struct {
	NodeID    string // at most MaxNameLen bytes
	ClusterID string // "" before it belongs to one
}

// MaxNameLen bounds a node's id and a cluster's id.
const MaxNameLen = 64

// Service says what a connection is for.
type Service byte

// The services of the port.
const (
	RaftService Service = 'R'
	CallService Service = 'C'
)

const (
	magic = "weir-node"
	// protocolVersion is what this side speaks, oldestProtocol the least it takes. Both
	// sides go on in the older version of the two; the handshake is the same in all of
	// them, so that nodes of different versions of weir find that out.
	protocolVersion = 1
	oldestProtocol  = 1
	nonceLen        = 16
	macLen          = sha256.Size
	maxRefusalLen   = 512
)

// greeting is the first message of either side.
type greeting struct {
	version byte
	service Service
	nonce   [nonceLen]byte
	self    Identity
}

func newGreeting(service Service, self Identity) greeting {
	g := greeting{version: protocolVersion, service: service, self: self}
	_, _ = rand.Read(g.nonce[:]) // which ends the process rather than fail
	return g
}

func (g *greeting) encode() []byte {
	b := append([]byte(magic), g.version, byte(g.service))
	b = append(b, g.nonce[:]...)
	for _, s := range []string{g.self.NodeID, g.self.ClusterID} {
		b = append(append(b, byte(len(s))), s...)
	}
	return b
}

// readGreeting reads a greeting and returns it with its bytes.
func readGreeting(r io.Reader) (g greeting, raw []byte, err error) {
	head := make([]byte, len(magic)+2+nonceLen)
	if _, err := io.ReadFull(r, head); err != nil {
		return g, nil, fmt.Errorf("%w (%w)", ErrNotWeir, err)
	}
	if string(head[:len(magic)]) != magic {
		return g, nil, ErrNotWeir
	}
	if v := head[len(magic)]; v < oldestProtocol {
		return g, nil, fmt.Errorf("%w: %d, this one speaks %d and later", ErrVersion, v, oldestProtocol)
	}
	g.version = head[len(magic)]
	g.service = Service(head[len(magic)+1])
	copy(g.nonce[:], head[len(magic)+2:])
	if g.self.NodeID, raw, err = readName(r, head); err != nil {
		return g, nil, err
	}
	g.self.ClusterID, raw, err = readName(r, raw)
	return g, raw, err
}

// readName reads a name with its length before it and appends both to raw.
func readName(r io.Reader, raw []byte) (string, []byte, error) {
	var n [1]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return "", nil, fmt.Errorf("%w (%w)", ErrNotWeir, err)
	}
	name := make([]byte, n[0])
	if len(name) > MaxNameLen {
		return "", nil, ErrNotWeir
	}
	if _, err := io.ReadFull(r, name); err != nil {
		return "", nil, fmt.Errorf("%w (%w)", ErrNotWeir, err)
	}
	return string(name), append(append(raw, n[0]), name...), nil
}

// proof is what only someone who knows the secret can say about what was said.
func proof(secret []byte, role string, first, second []byte) []byte {
	mac := hmac.New(sha256.New, secret)
	for _, part := range [][]byte{[]byte(role), first, second} {
		var n [4]byte
		binary.LittleEndian.PutUint32(n[:], uint32(len(part)))
		mac.Write(n[:])
		mac.Write(part)
	}
	return mac.Sum(nil)
}

// The dialer speaks first and proves first. Whoever does not know the secret hears
// nothing but a nonce: no name, and nothing that a guess could be tried on.
//
//	dialer    greeting
//	acceptor  challenge: magic version nonce
//	dialer    proof over greeting and challenge
//	acceptor  greeting, proof over all three, verdict

// challengeLen is the length of the acceptor's first message.
const challengeLen = len(magic) + 1 + nonceLen

// greet is the dialer's side of the handshake.
func greet(conn net.Conn, secret []byte, service Service, self Identity) (Identity, error) {
	mine := newGreeting(service, self)
	said := mine.encode()
	if _, err := conn.Write(said); err != nil {
		return Identity{}, err
	}
	challenge, err := readChallenge(conn)
	if err != nil {
		return Identity{}, err
	}
	if _, err := conn.Write(proof(secret, "dialer", said, challenge)); err != nil {
		return Identity{}, err
	}
	theirs, heard, err := readGreeting(conn)
	if err != nil {
		return Identity{}, ended(ErrUnproven, err)
	}
	mac := make([]byte, macLen)
	if _, err := io.ReadFull(conn, mac); err != nil {
		return Identity{}, err
	}
	if !hmac.Equal(mac, proof(secret, "acceptor", append(said, challenge...), heard)) {
		return Identity{}, ErrSecret
	}
	return theirs.self, readVerdict(conn)
}

// ended returns the error for a message of the handshake that did not arrive. A node does
// not say that a secret is wrong, so a dialer cannot tell that from a node that stops.
func ended(meaning, err error) error {
	if errors.Is(err, io.EOF) {
		err = io.EOF // without a wrapper that says that the other side does not speak the protocol
	}
	return fmt.Errorf("%w (%w)", meaning, err)
}

func readChallenge(r io.Reader) ([]byte, error) {
	b := make([]byte, challengeLen)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrNotWeir, err)
	}
	if string(b[:len(magic)]) != magic {
		return nil, ErrNotWeir
	}
	if v := b[len(magic)]; v < oldestProtocol {
		return nil, fmt.Errorf("%w: %d, this one speaks %d and later", ErrVersion, v, oldestProtocol)
	}
	return b, nil
}

// receive is the acceptor's side. An error has been told to a dialer who knows the
// secret.
func receive(conn net.Conn, secret []byte, self Identity, judge func(Service, Identity) error) (Service, Identity,
	error) {
	theirs, heard, err := readGreeting(conn)
	if err != nil {
		return 0, Identity{}, err
	}
	mine := newGreeting(theirs.service, self)
	challenge := append(append([]byte(magic), protocolVersion), mine.nonce[:]...)
	if _, err := conn.Write(challenge); err != nil {
		return 0, Identity{}, err
	}
	mac := make([]byte, macLen)
	if _, err := io.ReadFull(conn, mac); err != nil {
		return 0, Identity{}, ended(ErrEnded, err)
	}
	if !hmac.Equal(mac, proof(secret, "dialer", heard, challenge)) {
		return 0, Identity{}, ErrSecret
	}
	said := mine.encode()
	if _, err := conn.Write(append(said, proof(secret, "acceptor", append(heard, challenge...), said)...)); err != nil {
		return 0, Identity{}, err
	}
	err = judge(theirs.service, theirs.self)
	return theirs.service, theirs.self, errors.Join(err, writeVerdict(conn, err))
}

func writeVerdict(w io.Writer, verdict error) error {
	text := ""
	if verdict != nil {
		text = verdict.Error()
	}
	text = text[:min(len(text), maxRefusalLen)]
	_, err := w.Write(append(binary.LittleEndian.AppendUint16(nil, uint16(len(text))), text...))
	return err
}

func readVerdict(r io.Reader) error {
	var n [2]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return err
	}
	text := make([]byte, min(int(binary.LittleEndian.Uint16(n[:])), maxRefusalLen))
	if _, err := io.ReadFull(r, text); err != nil {
		return err
	}
	if len(text) > 0 {
		return fmt.Errorf("%w: %s", ErrRefused, text)
	}
	return nil
}
