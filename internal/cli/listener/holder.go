package listener

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/weir-project/weir/internal/cli/terminal"
)

// answerWithin bounds how long a server on this machine may take to identify itself.
const answerWithin = 500 * time.Millisecond

// WhoListens describes the process that listens at an address of this machine. If the system does not show the process,
// it describes the protocol. It returns "" if neither is known.
func WhoListens(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return ""
	}
	if name, pid := listenerOn(port); pid != 0 {
		return fmt.Sprintf("%s (pid %d)", terminal.PlainText(name), pid)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return spokenAt(net.JoinHostPort(host, port))
}

// spokenAt asks a server for its kind, by a request that servers of Redis' protocol and of HTTP answer.
func spokenAt(addr string) string {
	conn, err := net.DialTimeout("tcp", addr, answerWithin)
	if err != nil {
		return ""
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(answerWithin))
	fmt.Fprint(conn, "*2\r\n$4\r\nINFO\r\n$6\r\nserver\r\n")
	said := bufio.NewScanner(conn)
	for what := ""; said.Scan(); {
		switch line := said.Text(); {
		case strings.HasPrefix(line, "HTTP/"):
			return "a web server"
		case strings.HasPrefix(line, "-"):
			return "a server that speaks Redis' protocol"
		case strings.HasPrefix(line, "weir_version:"):
			return "another weir"
		case strings.HasPrefix(line, "redis_version:"):
			what = "a Redis server"
		case line == "" && what != "": // the end of the reply of INFO
			return what
		}
	}
	return ""
}
