package remote

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// saying returns the address of a server that answers any request with one text.
func saying(t *testing.T, what string) (addr string) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			c.Read(make([]byte, 4<<10)) // unread data would reset the connection
			fmt.Fprint(c, what)
			c.Close()
		}
	}()
	return ln.Addr().String()
}

// TestDialErrorsNameTheCause checks that the error of Dial names the cause: a port of another protocol, TLS on one side
// only, a password for a server without one, or a closed port.
func TestDialErrorsNameTheCause(t *testing.T) {
	page := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(page.Close)
	for _, c := range []struct {
		name, addr, password string
		tls                  bool
		want                 string
	}{
		{"HTTP", strings.TrimPrefix(page.URL, "http://"), "", false, "does not speak RESP"},
		{"somebody's TLS", saying(t, "\x15\x03\x01\x00\x02\x02\x46"), "", false, "does not speak RESP"},
		{"weir's TLS", saying(t, "-ERR this port takes TLS only\r\n"), "", false,
			"refuses the connection: ERR this port takes TLS only"},
		{"no TLS", saying(t, "-ERR what?\r\n"), "", true, "does not speak TLS"},
		{"a password too many", saying(t, "-ERR no password is set\r\n"), "secret", false,
			"refuses the connection: ERR no password is set"},
		{"nobody", "127.0.0.1:1", "", false, "cannot reach a server at 127.0.0.1:1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := (&Flags{TLS: c.tls}).Dial(c.addr, c.password)
			require.ErrorContains(t, err, c.want)
		})
	}
	t.Run("rights are no matter yet", func(t *testing.T) {
		conn, err := (&Flags{}).Dial(saying(t, "-NOAUTH Authentication required.\r\n"), "")
		require.NoError(t, err)
		conn.Close()
	})
}
