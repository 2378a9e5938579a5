package cmdline

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// checkAddresses refuses a value that is not HOST:PORT, or a list of such addresses.
func checkAddresses(how string, value any, listens bool) (err error) {
	list, ok := value.([]string)
	if !ok {
		list = []string{value.(string)}
	}
	for _, addr := range list {
		err = errors.Join(err, checkAddress(how, addr, listens))
	}
	return err
}

func checkAddress(how, addr string, listens bool) error {
	host, port, err := net.SplitHostPort(addr)
	if err == nil && !strings.ContainsAny(host, "/ ") {
		if _, err = net.LookupPort("tcp", port); err == nil && port != "" {
			return nil
		}
	}
	return fmt.Errorf("%s must be HOST:PORT like 127.0.0.1:6380, not %q%s", how, addr, addressHint(addr, port, listens))
}

// addressHint returns the end of an error message, which names the likely mistake in addr. It returns "" if it
// recognises no mistake.
func addressHint(addr, port string, listens bool) string {
	_, notNumber := strconv.Atoi(addr)
	switch {
	case notNumber == nil && listens:
		return fmt.Sprintf(": write 127.0.0.1:%s for this machine alone, :%[1]s for all its addresses", addr)
	case notNumber == nil:
		return ": write 127.0.0.1:" + addr + " for this machine"
	case strings.HasPrefix(addr, "unix:") && listens, strings.HasPrefix(addr, "/") && listens:
		return ": a Unix socket is --unix-socket, --http-socket or --rls-socket"
	case strings.Contains(addr, "://"):
		return ": leave out " + addr[:strings.Index(addr, "://")+3]
	case net.ParseIP(addr) != nil && strings.Contains(addr, ":"):
		return ": IPv6 stands in brackets, like [::1]:6380"
	case port != "":
		return ": the port is a number from 0 to 65535"
	case strings.Contains(addr, ":"):
		return ""
	}
	return ": the port is missing"
}
