package remote

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/gomodule/redigo/redis"
)

// Advise adds the next step to the errors that any command may get from a server. Other errors contain it already.
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
		return fmt.Errorf("%w: this server runs alone; start a node of a cluster with --node-id and --join", err)
	}
	return err
}
