package policy

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gomodule/redigo/redis"

	"github.com/weir-project/weir/internal/cli/remote"
	"github.com/weir-project/weir/policyfile"
	"github.com/weir-project/weir/server/commands"
)

// Server is a connection to a server whose policies are read or changed.
type Server struct{ Conn redis.Conn }

// ErrChanged reports that a policy has changed since it was read. Apply has changed nothing then.
var ErrChanged = errors.New("another client changed the policies at the same time")

// Policies reads all policies of the server.
func (s *Server) Policies() (all []policyfile.Terms, err error) {
	names, err := redis.Strings(s.Conn.Do("RL.POLICY", "LIST"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		reply, err := redis.Values(s.Conn.Do("RL.POLICY", "GET", name))
		switch refused := redis.Error(""); {
		case errors.As(err, &refused) && strings.HasPrefix(string(refused), "ERR there is no policy"):
			continue // deleted meanwhile
		case err != nil:
			return nil, err
		}
		terms, err := readTerms(reply)
		if err != nil {
			return nil, fmt.Errorf("policy %s: the server sent an unexpected policy: %w", name, err)
		}
		all = append(all, terms)
	}
	return all, nil
}

func readTerms(reply []any) (t policyfile.Terms, err error) {
	for i := 0; i+1 < len(reply) && err == nil; i += 2 {
		var name string
		if name, err = redis.String(reply[i], nil); err != nil {
			return t, err
		}
		switch value := reply[i+1]; name {
		case "version":
			t.Version, err = redis.Int64(value, nil)
		case "owner":
			t.Owner, err = redis.String(value, nil)
		case "name":
			t.Name, err = redis.String(value, nil)
		case "limits":
			t.Limits, err = redis.Strings(value, nil)
		case "shadow":
			t.Shadow, err = redis.Bool(value, nil)
		case "disabled":
			t.Disabled, err = redis.Bool(value, nil)
		case "retry_after_ms":
			t.RetryAfterMs, err = redis.Int64(value, nil)
		case "reserved":
			t.Reserved, err = redis.String(value, nil)
		case "layout":
			t.Layout, err = redis.String(value, nil)
		case "report":
			t.Report, err = redis.String(value, nil)
		case "record":
			t.Record, err = redis.Bool(value, nil)
		case "overrides":
			t.Overrides, err = readOverrides(value)
		}
	}
	return t, err
}

func readOverrides(reply any) (all []policyfile.Override, err error) {
	list, err := redis.Values(reply, nil)
	for i := 0; i < len(list) && err == nil; i++ {
		var fields []any
		if fields, err = redis.Values(list[i], nil); err != nil || len(fields) != 3 {
			return nil, errors.Join(err, fmt.Errorf("override %d has %d fields", i, len(fields)))
		}
		var o policyfile.Override
		var keyErr, limitErr, ttlErr error
		o.Key, keyErr = redis.String(fields[0], nil)
		o.Limits, limitErr = redis.Strings(fields[1], nil)
		o.TTLMs, ttlErr = redis.Int64(fields[2], nil)
		all, err = append(all, o), errors.Join(keyErr, limitErr, ttlErr)
	}
	return all, err
}

// Change sends changes as one transaction: all of them or none.
func (s *Server) Change(changes [][]string) error {
	switch n := len(changes); {
	case n == 0:
		return nil
	case n > commands.MaxBatch:
		return fmt.Errorf("nothing was changed: the file makes %d changes, and one step takes at most %d: "+
			"apply a part of the file first", n, commands.MaxBatch)
	}
	if _, err := s.Conn.Do("MULTI"); err != nil {
		return err
	}
	for _, words := range changes {
		if _, err := s.Conn.Do("RL.POLICY", remote.Args(words)...); err != nil {
			return fmt.Errorf("nothing was changed: %w", err)
		}
	}
	replies, err := redis.Values(s.Conn.Do("EXEC"))
	if refused := redis.Error(""); err != nil && !errors.As(err, &refused) {
		return fmt.Errorf("the connection broke before the answer, so either all changes were made or none: run the "+
			"command again, it makes the missing changes: %w", err)
	}
	for i := 0; i < len(replies) && err == nil; i++ {
		err = refusedBy(changes[i], replies[i])
	}
	return err
}

// refusedBy returns the server's error about a command, from a reply of a transaction. It ignores the replies to
// commands that the server did not run because of that error.
func refusedBy(words []string, reply any) error {
	refused, failed := reply.(redis.Error)
	switch {
	case !failed || strings.HasPrefix(string(refused), "ERR nothing was done"):
		return nil
	case strings.HasPrefix(string(refused), "CHANGED "):
		return ErrChanged
	}
	return fmt.Errorf("nothing was changed: %s: %w", strings.Join(words, " "), refused)
}
