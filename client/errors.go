package client

import (
	"errors"
	"net"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// Errors of this package. Each is wrapped with its cause.
var (
	// ErrBadOptions: an option is missing or out of range.
	ErrBadOptions = errors.New("client: bad options")
	// ErrBadRule: a rule was made with an argument out of range.
	ErrBadRule = errors.New("client: bad rule")
	// ErrBadRequest: a request does not fit its rule. Nothing was sent.
	ErrBadRequest = errors.New("client: bad request")
	// ErrRefused: weir answered with an error. Nothing was counted.
	ErrRefused = errors.New("client: weir refuses the command")
	// ErrIDUsed: the ID was used for another request, or names another hold. It comes with ErrRefused. No fallback
	// decides such a request.
	ErrIDUsed = errors.New("client: the ID was used for another request")
	// ErrFull: weir has no memory for a new limiter. Nothing was counted.
	ErrFull = errors.New("client: weir has no memory for a new limiter")
	// ErrReply: the reply is not one of weir's.
	ErrReply = errors.New("client: unexpected reply")
	// ErrUnavailable: weir is not there, and the command certainly had no effect.
	ErrUnavailable = errors.New("client: weir is not available")
	// ErrBusy: weir, or the pool of connections to it, is busy. The command certainly had no effect.
	ErrBusy = errors.New("client: weir is busy, nothing was done")
	// ErrInDoubt: weir did not answer in time. The command may have been carried out.
	ErrInDoubt = errors.New("client: no answer in time, the command may have been carried out")
	// ErrDenied: the wait would outlast the context of Wait, or no wait helps.
	ErrDenied = errors.New("client: denied")
	// ErrQueueFull: too many requests are waiting, in this process or at weir. It comes with ErrRefused.
	ErrQueueFull = errors.New("client: too many requests are waiting")
	// ErrClosed: the client, or a lease, has been closed.
	ErrClosed = errors.New("client: closed")
)

// outcome is the outcome of a command.
type outcome uint8

const (
	done       outcome = iota // it was carried out
	refused                   // weir answered with an error that resending does not fix
	notApplied                // certainly not carried out; resending is safe
	inDoubt                   // it may have been carried out
)

// retryableErrors has the prefixes of errors after which nothing was done and the same command may soon succeed. Every
// other error except UNKNOWN means that resending does not help.
var retryableErrors = []string{"TRYAGAIN", "CLUSTERDOWN", "OVERLOADED", "LOADING", "ERR max number of clients"}

func outcomeOf(err error) outcome {
	if err == nil {
		return done
	}
	var said redis.Error
	if errors.As(err, &said) {
		return outcomeOfReply(said.Error())
	}
	if errors.Is(err, redis.ErrClosed) {
		return refused
	}
	if notSent(err) || dialing(err) {
		return notApplied
	}
	return inDoubt
}

func outcomeOfReply(text string) outcome {
	for _, word := range retryableErrors {
		if strings.HasPrefix(text, word) {
			return notApplied
		}
	}
	if strings.HasPrefix(text, "UNKNOWN") {
		return inDoubt
	}
	return refused
}

// absentReplies has the prefixes of errors by which weir itself says that it decides nothing at present: it has no
// leader, or still loads its data.
var absentReplies = []string{"CLUSTERDOWN", "LOADING"}

// absent reports whether an error proves that weir is not there. Only such an error lets Options.WhenDown decide. A
// timeout, a full pool of connections and an answer such as OVERLOADED prove the opposite or nothing: weir, or this
// process, is busy, and whoever sends many requests can make it so.
func absent(err error) bool {
	var said redis.Error
	if errors.As(err, &said) {
		for _, word := range absentReplies {
			if strings.HasPrefix(said.Error(), word) {
				return true
			}
		}
		return false
	}
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" && !op.Timeout() && !exhausted(err)
}

// exhausted reports whether this process or machine lacks file descriptors, ports or memory for a connection.
func exhausted(err error) bool {
	for _, lack := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.ENOBUFS,
		syscall.ENOMEM, syscall.EAGAIN} {
		if errors.Is(err, lack) {
			return true
		}
	}
	return false
}
