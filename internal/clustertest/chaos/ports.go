package chaos

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// Servers listen on the same port again after a restart. These ports are below the range from which the kernel takes
// ports for outgoing connections (32768 on Linux), so no such connection can take them meanwhile.
const (
	lowestPort  = 15000
	highestPort = 32000
	portTries   = 1000
)

var errNoPorts = errors.New("no free ports found")

// freeAddrs finds n free loopback addresses.
func freeAddrs(n int) ([]string, error) {
	var addrs []string
	for range portTries {
		port := lowestPort + rand.IntN(highestPort-lowestPort)
		ln, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		defer ln.Close() // held until all are found, so that all differ
		if addrs = append(addrs, ln.Addr().String()); len(addrs) == n {
			return addrs, nil
		}
	}
	return nil, errNoPorts
}
