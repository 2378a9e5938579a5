package peer

import (
	"encoding/binary"
	"errors"
	"slices"
)

// A request on a shared connection names its group and both nodes, because a node may have another id in each group:
//
//	group(2) length node-id length cluster-id length receiver-id message
//
// Its frame has the kind of the message. The highest bit marks a patient message.
const patientBit = 0x80

var errEnvelope = errors.New("malformed request on a shared connection")

// envelope is the address of a message between two nodes of a group.
type envelope struct {
	group uint16
	from  Identity
	to    string // the id of the receiving node
}

// seal returns a message in its envelope.
func (e *envelope) seal(message []byte) []byte {
	names := [...]string{e.from.NodeID, e.from.ClusterID, e.to}
	b := make([]byte, 0, 2+len(names)*(1+MaxNameLen)+len(message))
	b = binary.LittleEndian.AppendUint16(b, e.group)
	for _, s := range names {
		b = append(append(b, byte(len(s))), s...)
	}
	return append(b, message...)
}

// seal returns a message of this node to a node of the same group.
func (p *Port) seal(to string, message []byte) []byte {
	e := envelope{group: p.group, from: p.config.Self(), to: to}
	return e.seal(message)
}

// unseal returns an envelope and its message.
func unseal(b []byte) (e envelope, message []byte, err error) {
	if len(b) < 2 {
		return e, nil, errEnvelope
	}
	e.group, b = binary.LittleEndian.Uint16(b), b[2:]
	for _, name := range []*string{&e.from.NodeID, &e.from.ClusterID, &e.to} {
		if len(b) == 0 || b[0] > MaxNameLen || len(b) < 1+int(b[0]) {
			return e, nil, errEnvelope
		}
		*name, b = string(b[1:1+b[0]]), b[1+b[0]:]
	}
	return e, slices.Clip(b), nil
}
