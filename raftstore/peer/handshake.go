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
	// ErrNoGroup: this host does not have the group, or not yet. The dialer receives it as ErrRefused and tries again.
	ErrNoGroup = errors.New("this node has no group")
	ErrWrongID = errors.New("another node answers at this address")
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

// The services of a port. The greeting names the service with this letter for group 0, and with the lower case of the
// letter for any other group.
const (
	RaftService Service = 'R'
	CallService Service = 'C'
	// SharedService is the service of a connection that all groups of two hosts share. Its greeting names no group, and
	// a host that does not know the service refuses it.
	SharedService Service = 'S'
)

// lowerCase is the difference between a letter and its lower case.
const lowerCase = 'a' - 'A'

const (
	magic = "weir-node"
	// protocolVersion is the version that this side speaks, and oldestProtocol is the oldest version that it accepts.
	// All versions have the same handshake, so nodes of different versions of weir can compare them.
	protocolVersion = 1
	oldestProtocol  = 1
	// sharedVersion replaces protocolVersion in the greetings of a shared connection. Calls and bundles (bundle.go)
	// need version 2 on both sides.
	sharedVersion = 2
	nonceLen      = 16
	macLen        = sha256.Size
	maxRefusalLen = 512
)

// greeting is the message in which a side names itself:
//
//	magic version service nonce length node-id length cluster-id [group]
//
// group has two bytes, the lower one first. The greeting of group 0 does not contain it.
type greeting struct {
	version byte
	service Service
	group   uint16
	nonce   [nonceLen]byte
	self    Identity
}

func newGreeting(service Service, group uint16, self Identity) greeting {
	g := greeting{version: protocolVersion, service: service, group: group, self: self}
	if service == SharedService {
		g.version = sharedVersion
	}
	_, _ = rand.Read(g.nonce[:]) // Read never fails: it ends the process instead
	return g
}

func (g *greeting) encode() []byte {
	service := byte(g.service)
	if g.group > 0 {
		service += lowerCase
	}
	b := append([]byte(magic), g.version, service)
	b = append(b, g.nonce[:]...)
	for _, s := range []string{g.self.NodeID, g.self.ClusterID} {
		b = append(append(b, byte(len(s))), s...)
	}
	if g.group > 0 {
		b = binary.LittleEndian.AppendUint16(b, g.group)
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
	if g.self.ClusterID, raw, err = readName(r, raw); err != nil {
		return g, nil, err
	}
	if upper := g.service - lowerCase; upper == RaftService || upper == CallService {
		g.service = upper
		g.group, raw, err = readGroup(r, raw)
	}
	return g, raw, err
}

// readGroup reads the number of a group above 0, and appends its bytes to raw.
func readGroup(r io.Reader, raw []byte) (uint16, []byte, error) {
	var b [2]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return 0, nil, fmt.Errorf("%w (%w)", ErrNotWeir, err)
	}
	group := binary.LittleEndian.Uint16(b[:])
	if group == 0 { // the greeting of group 0 has another form
		return 0, nil, ErrNotWeir
	}
	return group, append(raw, b[:]...), nil
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

// greet carries out the dialer's side of the handshake, and returns the greeting of the acceptor.
func greet(conn net.Conn, secret []byte, mine greeting) (greeting, error) {
	said := mine.encode()
	if _, err := conn.Write(said); err != nil {
		return greeting{}, err
	}
	challenge, err := readChallenge(conn)
	if err != nil {
		return greeting{}, err
	}
	if _, err := conn.Write(proof(secret, "dialer", said, challenge)); err != nil {
		return greeting{}, err
	}
	theirs, heard, err := readGreeting(conn)
	if err != nil {
		return greeting{}, ended(ErrUnproven, err)
	}
	mac := make([]byte, macLen)
	if _, err := io.ReadFull(conn, mac); err != nil {
		return greeting{}, err
	}
	if !hmac.Equal(mac, proof(secret, "acceptor", append(said, challenge...), heard)) {
		return greeting{}, ErrSecret
	}
	return theirs, readVerdict(conn)
}

// ended returns the error for a handshake message that did not arrive. A node does not report a wrong secret, so a
// dialer cannot tell a wrong secret from a node that stops.
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

// receive carries out the acceptor's side of the handshake, and returns the greeting of the dialer. When the dialer has
// proved that it knows the secret, receive calls judge for this side's identity and its verdict. It sends both to the
// dialer.
func receive(conn net.Conn, secret []byte, judge func(theirs greeting) (self Identity, verdict error)) (greeting,
	error) {
	theirs, heard, err := readGreeting(conn)
	if err != nil {
		return greeting{}, err
	}
	mine := newGreeting(theirs.service, theirs.group, Identity{})
	challenge := append(append([]byte(magic), protocolVersion), mine.nonce[:]...)
	if _, err := conn.Write(challenge); err != nil {
		return greeting{}, err
	}
	mac := make([]byte, macLen)
	if _, err := io.ReadFull(conn, mac); err != nil {
		return greeting{}, ended(ErrEnded, err)
	}
	if !hmac.Equal(mac, proof(secret, "dialer", heard, challenge)) {
		return greeting{}, ErrSecret
	}
	self, verdict := judge(theirs)
	mine.self = self
	said := mine.encode()
	if _, err := conn.Write(append(said, proof(secret, "acceptor", append(heard, challenge...), said)...)); err != nil {
		return greeting{}, err
	}
	return theirs, errors.Join(verdict, writeVerdict(conn, verdict))
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
