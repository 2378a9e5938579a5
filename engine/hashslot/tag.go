package hashslot

import (
	"strconv"
	"sync"
)

// Tag returns a short text in a slot. A key that contains it in braces is in the slot, too.
func Tag(slot uint16) string { return tags()[slot] }

// tags has the first number in base 36 that is in each slot.
var tags = sync.OnceValue(func() *[Count]string {
	var all [Count]string
	for n, missing := int64(0), Count; missing > 0; n++ {
		text := strconv.FormatInt(n, 36)
		if slot := Of([]byte(text)); all[slot] == "" {
			all[slot] = text
			missing--
		}
	}
	return &all
})
