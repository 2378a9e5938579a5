package servers

import "net"

// freeAddrs finds n different loopback ports nobody listens on. Another program may
// take one before the server does; then the server does not get ready.
func freeAddrs(n int) ([]string, error) {
	addrs := make([]string, n)
	for i := range addrs {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer ln.Close() // held until all are found, so that none is found twice
		addrs[i] = ln.Addr().String()
	}
	return addrs, nil
}
