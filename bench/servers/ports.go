package servers

import "net"

// freeAddrs finds n different free loopback ports. Another program may take one before the server does; the server then
// does not become ready.
func freeAddrs(n int) ([]string, error) {
	addrs := make([]string, n)
	for i := range addrs {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer ln.Close() // held until all are found, so that all differ
		addrs[i] = ln.Addr().String()
	}
	return addrs, nil
}
