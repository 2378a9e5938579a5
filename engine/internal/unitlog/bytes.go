package unitlog

import "encoding/binary"

var le = binary.LittleEndian
