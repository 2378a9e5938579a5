package remote

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/gomodule/redigo/redis"

	"github.com/weir-project/weir/internal/cli/cmdline"
	"github.com/weir-project/weir/internal/cli/terminal"
)

// Server is the address of a server and the login at it.
type Server struct {
	Addr         string `address:"" default:"127.0.0.1:6380" help:"A server, as clients reach it."`
	PasswordFile string `placeholder:"FILE" help:"File that contains its password."`
	Flags
}

// With calls act with a connection to the server. If the server redirects, it calls act again with the leader, even if
// act has already begun.
func (r *Server) With(act func(redis.Conn) error) error {
	password, err := cmdline.SecretFrom("password", "", r.PasswordFile)
	if err != nil {
		return err
	}
	addr := r.Addr
	for range MaxHops {
		conn, dialErr := r.Dial(addr, password)
		if dialErr != nil {
			return dialErr
		}
		if err = act(conn); err == nil || errors.As(err, new(*cmdline.Outcome)) {
			sayWhom(os.Stderr, conn, addr)
		}
		conn.Close()
		to, moved := MovedTo(err)
		if !moved {
			return err
		}
		addr = to
	}
	return fmt.Errorf("the leader changed several times, try again: %w", err)
}

// sayWhom writes to w which node of a cluster answered, and which node leads. The caller passes stderr, so that stdout
// can be piped. A user without permission for the status learns only the address. For a server that runs alone it
// writes nothing.
func sayWhom(w io.Writer, conn redis.Conn, addr string) {
	reply, err := conn.Do("WEIR.CLUSTER", "STATUS")
	if aboutRights(err) {
		fmt.Fprintf(w, "answered by %s\n", addr)
		return
	}
	if s, err := ReadStatus(reply); err == nil {
		fmt.Fprintf(w, "answered by %s at %s; %s\n", terminal.PlainText(s.Node), addr, s.LeadersText())
	}
}

// MovedTo returns the address in an error of the form MOVED <slot> <address>. ok is false for any other error.
func MovedTo(err error) (addr string, ok bool) {
	var refused redis.Error
	if !errors.As(err, &refused) {
		return "", false
	}
	words := strings.Fields(string(refused))
	if len(words) != 3 || words[0] != "MOVED" {
		return "", false
	}
	at := strings.LastIndexByte(words[2], ':')
	if at < 0 {
		return "", false
	}
	if host := words[2][:at]; strings.Contains(host, ":") { // an IPv6 address without brackets
		return "[" + host + "]" + words[2][at:], true
	}
	return words[2], true
}

// Args returns words as arguments of a command.
func Args(words []string) []any {
	list := make([]any, len(words))
	for i, w := range words {
		list[i] = w
	}
	return list
}
