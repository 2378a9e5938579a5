package remote

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/gomodule/redigo/redis"
)

// Advise adds what to do to the errors that a command may meet at a server, whichever command
// it is. Other errors say it themselves.
func Advise(err error) error {
	var said redis.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w: nothing listens there; start weir serve, or name the address at which it runs", err)
	case !errors.As(err, &said):
		return err
	case strings.HasPrefix(string(said), "NOAUTH"):
		return fmt.Errorf("%w It asks for a password: give --password-file FILE, "+
			"and --user NAME for a user other than default", err)
	case strings.Contains(string(said), "cluster support disabled"):
		return fmt.Errorf("%w: it is a server by itself; a node of a cluster is started with --node-id and --join", err)
	}
	return err
}
