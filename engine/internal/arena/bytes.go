package arena

import "encoding/binary"

var le = binary.LittleEndian
