package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/gomodule/redigo/redis"

	"github.com/weir-project/weir/internal/cli/cmdline"
)

// remote says which server a command talks to, and as whom.
type remote struct {
	Addr         string `address:"" default:"127.0.0.1:6380" help:"A server, as clients reach it."`
	PasswordFile string `placeholder:"FILE" help:"File that holds its password."`
	dialFlags
}

// with calls act with the server, and with the leader where the server sends there. act
// may so be called again after it has begun.
func (r *remote) with(act func(redis.Conn) error) error {
	password, err := cmdline.SecretFrom("password", "", r.PasswordFile)
	if err != nil {
		return err
	}
	addr := r.Addr
	for range maxClusterHops {
		conn, dialErr := r.dial(addr, password)
		if dialErr != nil {
			return dialErr
		}
		if err = act(conn); err == nil || errors.Is(err, errDiffers) {
			sayWhom(os.Stderr, conn, addr)
		}
		conn.Close()
		to, moved := movedTo(err)
		if !moved {
			return err
		}
		addr = to
	}
	return fmt.Errorf("the leader keeps changing, try again: %w", err)
}

// sayWhom writes to w which node of a cluster answered, and which leads. The caller passes
// stderr, so that stdout can be piped. A user without the right to ask for the status learns
// only the address. For a server that runs alone it writes nothing.
func sayWhom(w io.Writer, conn redis.Conn, addr string) {
	reply, err := conn.Do("WEIR.CLUSTER", "STATUS")
	if aboutRights(err) {
		fmt.Fprintf(w, "answered by %s\n", addr)
		return
	}
	if s, err := readStatus(reply); err == nil {
		fmt.Fprintf(w, "answered by %s at %s; leader %s\n", plainText(s.Node), addr, s.leaderName())
	}
}
