package leases

import "encoding/binary"

var le = binary.LittleEndian
