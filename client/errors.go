package client

import (
	"errors"
	"strings"

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
	// ErrFull: weir has no memory for a new limiter. Nothing was counted.
	ErrFull = errors.New("client: weir has no memory for a new limiter")
	// ErrReply: the reply is not one of weir's.
	ErrReply = errors.New("client: unexpected reply")
	// ErrUnavailable: weir was not reached, and the command certainly had no effect.
	ErrUnavailable = errors.New("client: weir is not available")
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
	if errors.Is(err, errNotSent) || errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) ||
		dialing(err) {
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
