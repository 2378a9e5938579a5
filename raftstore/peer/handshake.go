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
	ErrNotWeir  = errors.New("the peer does not speak weir's inter-node protocol")
	ErrVersion  = errors.New("the peer speaks an inter-node protocol that is too old")
	ErrSecret   = errors.New("the peer does not know this cluster's secret")
	ErrEnded    = errors.New("the peer closed the connection during the handshake")
	ErrUnproven = errors.New("the peer closed the connection before it proved that it knows this cluster's secret: " +
		"it stopped, or the two secrets differ")
	ErrCluster  = errors.New("the peer belongs to another cluster")
	ErrSameNode = errors.New("the peer has the id of this node")
	ErrRefused  = errors.New("refused by the peer")
	ErrWrongID  = errors.New("another node answers at this address")
)

// Identity is the node id and the cluster id that a node sends in the handshake.
type Identity struct {
	NodeID    string // at most MaxNameLen bytes
	ClusterID string // "" before the node belongs to a cluster
}

// MaxNameLen bounds the length of a node id and of a cluster id.
const MaxNameLen = 64

// Service is the purpose of a connection.
type Service byte

// The services of the port.
const (
	RaftService Service = 'R'
	CallService Service = 'C'
)

const (
	magic = "weir-node"
	// protocolVersion is the version that this side speaks, and oldestProtocol is the oldest version that it accepts.
	// All versions have the same handshake, so nodes of different versions of weir can compare them.
	protocolVersion = 1
	oldestProtocol  = 1
	nonceLen        = 16
	macLen          = sha256.Size
	maxRefusalLen   = 512
)

// greeting is the message in which a side names itself.
type greeting struct {
	version byte
	service Service
	nonce   [nonceLen]byte
	self    Identity
}

func newGreeting(service Service, self Identity) greeting {
	g := greeting{version: protocolVersion, service: service, self: self}
	_, _ = rand.Read(g.nonce[:]) // Read never fails: it ends the process instead
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

// readGreeting reads a greeting, and also returns its bytes.
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

// readName reads a name after its length, and appends both to raw.
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

// proof returns the HMAC of the messages of both sides under the secret. role keeps the proof of a dialer apart from
// the proof of an acceptor.
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

// The dialer sends its greeting and its proof first. A dialer without the secret receives only a nonce: no name, and
// nothing that allows to test a guessed secret offline.
//
//	dialer    greeting
//	acceptor  challenge: magic version nonce
//	dialer    proof over greeting and challenge
//	acceptor  greeting, proof over all three, verdict

// challengeLen is the length of the acceptor's first message.
const challengeLen = len(magic) + 1 + nonceLen

// greet carries out the dialer's side of the handshake.
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

// ended returns the error for a handshake message that did not arrive. A node does not report a wrong secret, so a
// dialer cannot tell it from a node that stops.
func ended(meaning, err error) error {
	if errors.Is(err, io.EOF) {
		err = io.EOF // without the wrapper ErrNotWeir
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

// receive carries out the acceptor's side of the handshake. It sends the error of judge to the dialer, which has
// proved by then that it knows the secret.
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
