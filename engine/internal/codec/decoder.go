package codec

import "encoding/binary"

// Decoder decodes a stored value. After the first fault its results have no meaning.
type Decoder struct {
	B   []byte // the bytes that are not yet decoded
	Bad bool   // a fault was found: the bytes end early, or a value is out of bounds
}

// Varint reads an integer.
func (d *Decoder) Varint() int64 {
	n, used := binary.Varint(d.B)
	if used <= 0 {
		d.Bad, d.B = true, nil
		return 0
	}
	d.B = d.B[used:]
	return n
}

// Within reads a varint. A value below low or above high is a fault, but is returned.
func (d *Decoder) Within(low, high int64) int64 {
	n := d.Varint()
	d.Bad = d.Bad || n < low || n > high
	return n
}

// Bytes reads n bytes. The result refers to the decoded value.
func (d *Decoder) Bytes(n int64) []byte {
	if n < 0 || n > int64(len(d.B)) {
		d.Bad, d.B = true, nil
		return nil
	}
	b := d.B[:n]
	d.B = d.B[n:]
	return b
}

// Byte reads one byte.
func (d *Decoder) Byte() byte {
	if b := d.Bytes(1); len(b) == 1 {
		return b[0]
	}
	return 0
}
