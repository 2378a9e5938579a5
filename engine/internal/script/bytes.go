package script

import "encoding/binary"

var le = binary.LittleEndian
