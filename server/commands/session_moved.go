package commands

import (
	"fmt"
	"net"
	"strconv"

	"github.com/weir-project/weir/server/info"
	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/service"
)

// moved is the reply for one key of operations that the leader carries out. The slot is the key's own: some clients
// change their map of slots by it.
func moved(to service.Elsewhere, key []byte) error {
	return resp.Error(fmt.Sprintf("MOVED %d %s", info.KeySlot(key), string(to)))
}

// forKey completes an error of redirect for a reply about key.
func forKey(err error, key []byte) error {
	if to, ok := err.(service.Elsewhere); ok {
		return moved(to, key)
	}
	return err
}

// isHostPort says whether b is an address to reach another machine's port by.
func isHostPort(b []byte) bool {
	host, text, err := net.SplitHostPort(string(b))
	port, errPort := strconv.ParseUint(text, 10, 16)
	return err == nil && errPort == nil && host != "" && port > 0
}
