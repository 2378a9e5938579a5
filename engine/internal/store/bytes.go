package store

import "encoding/binary"

var le = binary.LittleEndian
