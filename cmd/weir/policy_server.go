package main

import (
	"errors"
	"fmt"

	"github.com/gomodule/redigo/redis"

	"github.com/weir-project/weir/policyfile"
)

// policyServer is a connection to a server whose policies are looked at or changed.
type policyServer struct{ conn redis.Conn }

// with calls act with the server, and with the leader where the server sends there.
func (c *policyCmd) with(act func(*policyServer) error) error {
	at := remote{c.Addr, c.PasswordFile, c.dialFlags}
	return at.with(func(conn redis.Conn) error { return act(&policyServer{conn}) })
}

// policies asks for everything that is in force.
func (s *policyServer) policies() (all []policyfile.Terms, err error) {
	names, err := redis.Strings(s.conn.Do("RL.POLICY", "LIST"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		reply, err := redis.Values(s.conn.Do("RL.POLICY", "GET", name))
		if err != nil {
			return nil, err
		}
		terms, err := readTerms(reply)
		if err != nil {
			return nil, fmt.Errorf("policy %s: the server answers what is no policy: %w", name, err)
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

// change carries steps out as one transaction: all of them or, when one is refused
// before, none.
func (s *policyServer) change(steps []policyfile.Step) error {
	if len(steps) == 0 {
		return nil
	}
	if _, err := s.conn.Do("MULTI"); err != nil {
		return err
	}
	for _, step := range steps {
		if _, err := s.conn.Do("RL.POLICY", toAny(step.Words)...); err != nil {
			return fmt.Errorf("nothing was changed: %w", err)
		}
	}
	replies, err := redis.Values(s.conn.Do("EXEC"))
	for i := 0; i < len(replies) && err == nil; i++ {
		if refused, ok := replies[i].(redis.Error); ok {
			err = fmt.Errorf("%s: %w", steps[i].After, refused)
		}
	}
	return err
}

func toAny(words []string) []any {
	list := make([]any, len(words))
	for i, w := range words {
		list[i] = w
	}
	return list
}
