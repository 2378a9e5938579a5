// Package keys shows the limiters of a running server by key, and resets, blocks and unblocks them.
package keys

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/gomodule/redigo/redis"

	"github.com/weir-project/weir/internal/cli/remote"
	"github.com/weir-project/weir/internal/cli/terminal"
	"github.com/weir-project/weir/internal/millis"
)

// Command shows the keys of a running server, and changes the state that counts against them.
type Command struct {
	remote.Server
	remote.Database

	List    listCmd    `cmd:"" help:"List keys that are not idle, with their usage."`
	Look    lookCmd    `cmd:"" help:"Show all that counts against a key: its own limiter, and the limiters of policies."`
	Explain explainCmd `cmd:"" help:"Preview the answer of a decision, and why, without taking anything."`
	Reset   resetCmd   `cmd:"" help:"Forget the usage of keys, with all policies. Blocks stay."`
	Block   blockCmd   `cmd:"" help:"Deny every decision on keys."`
	Unblock unblockCmd `cmd:"" help:"Lift blocks."`
}

// AfterApply selects the database.
func (k *Command) AfterApply() error {
	k.Select(&k.Flags)
	return nil
}

type listCmd struct {
	Pattern string `arg:"" default:"*" help:"Which keys, as in Redis: *, ?, [ab]. Keys of policies are named policy|<policy>|<limit>|<key>."`
	Limit   int    `env:"-" default:"100" help:"How many at most; 0 for all."`
	JSON    bool   `env:"-" name:"json" help:"Print JSON."`
}

type lookCmd struct {
	Key  string `arg:"" help:"The key."`
	JSON bool   `env:"-" name:"json" help:"Print JSON."`
}

type explainCmd struct {
	JSON    bool     `env:"-" name:"json" help:"Print JSON. The flag stands before the decision."`
	Command []string `arg:"" passthrough:"" help:"A decision with its arguments, like RL.CHECK login user:42."`
}

// chosen are the keys that a change affects.
type chosen struct {
	Keys   []string `arg:"" optional:"" help:"The keys."`
	Match  string   `env:"-" placeholder:"PATTERN" help:"All keys that match, instead of names. Keys that are created meanwhile may be missed."`
	DryRun bool     `env:"-" help:"Only list these keys."`
	JSON   bool     `env:"-" name:"json" help:"Print JSON."`
}

type resetCmd struct{ chosen }

type blockCmd struct {
	chosen
	Everywhere bool   `env:"-" help:"Block an address: for ip: and an address, also the address alone, and every key that ends in | and this key."`
	For        string `env:"-" default:"FOREVER" placeholder:"DURATION" help:"How long, like 90s or 1h; until it is lifted, unless given."`
	Reason     string `env:"-" help:"The reason, shown to people who look the key up."`
}

type unblockCmd struct{ chosen }

var ErrWhichKeys = errors.New("give either keys or --match, not both")

func (l *listCmd) Run(k *Command) error    { return l.show(os.Stdout, k) }
func (l *lookCmd) Run(k *Command) error    { return l.show(os.Stdout, k) }
func (e *explainCmd) Run(k *Command) error { return e.show(os.Stdout, k) }

func (r *resetCmd) Run(k *Command) error {
	return r.change(os.Stdout, k, "forgotten",
		func(s *server, key string) (bool, error) { return s.reset(key, r.Match == "") })
}

func (b *blockCmd) Run(k *Command) error {
	how := []any{b.For}
	if b.Everywhere {
		how = append(how, "EVERYWHERE")
	}
	if b.Reason != "" {
		how = append(how, "REASON", b.Reason)
	}
	return b.change(os.Stdout, k, "blocked", func(s *server, key string) (bool, error) {
		if strings.HasPrefix(key, policyKeyPrefix) && b.Match != "" {
			return false, nil // the block belongs to the key itself, for all policies
		}
		_, err := s.conn.Do("RL.BLOCK", append([]any{key}, how...)...)
		return err == nil, err
	})
}

func (u *unblockCmd) Run(k *Command) error {
	return u.change(os.Stdout, k, "unblocked", func(s *server, key string) (bool, error) {
		return redis.Bool(s.conn.Do("RL.UNBLOCK", key))
	})
}

func (l *listCmd) show(w io.Writer, k *Command) error {
	found := []Status{}
	err := k.With(func(conn redis.Conn) error {
		s := &server{conn: conn}
		found = found[:0]
		return s.each(l.Pattern, func(key string) (bool, error) {
			status, ok, err := s.look(key)
			if ok {
				found = append(found, status)
			}
			return l.Limit == 0 || len(found) < l.Limit, err
		})
	})
	if err != nil {
		return err
	}
	return writeKeys(w, found, l.JSON)
}

func (l *lookCmd) show(w io.Writer, k *Command) (err error) {
	found := []Status{}
	err = k.With(func(conn redis.Conn) error {
		s := &server{conn: conn}
		found = found[:0]
		names, err := s.limitersOf(l.Key)
		for i := 0; i < len(names) && err == nil; i++ {
			var status Status
			var ok bool
			if status, ok, err = s.look(names[i]); ok {
				found = append(found, status)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	return writeKeys(w, found, l.JSON)
}

func (e *explainCmd) show(w io.Writer, k *Command) error {
	var told named
	err := k.With(func(conn redis.Conn) (err error) {
		told, err = readNamed(conn.Do("RL.EXPLAIN", remote.Args(e.Command)...))
		return err
	})
	if err != nil {
		return err
	}
	if e.JSON {
		return terminal.WriteJSON(w, told)
	}
	return told.write(w)
}

// change runs a function on each of the keys, and reports how many it changed.
func (c *chosen) change(w io.Writer, k *Command, done string, one func(*server, string) (bool, error)) error {
	if (len(c.Keys) == 0) == (c.Match == "") {
		return ErrWhichKeys
	}
	changed, counted := []string{}, map[string]bool{} // after a redirect the new leader may change a key a second time
	err := k.With(func(conn redis.Conn) error {
		s := &server{conn: conn}
		return c.each(s, func(key string) (bool, error) {
			had := c.DryRun
			var err error
			if !had {
				had, err = one(s, key)
			}
			if had && !counted[key] {
				changed, counted[key] = append(changed, key), true
			}
			return true, err
		})
	})
	if c.JSON {
		return errors.Join(terminal.WriteJSON(w, map[string]any{done: changed, "dry_run": c.DryRun}), err)
	}
	for _, key := range changed {
		fmt.Fprintln(w, terminal.PlainText(key))
	}
	if c.DryRun {
		done = "to be " + done
	}
	_, writeErr := fmt.Fprintf(w, "%d %s\n", len(changed), done)
	return errors.Join(writeErr, err)
}

func (c *chosen) each(s *server, visit func(string) (bool, error)) error {
	if c.Match != "" {
		return s.each(c.Match, visit)
	}
	for _, key := range c.Keys {
		if _, err := visit(key); err != nil {
			return err
		}
	}
	return nil
}

// duration formats milliseconds for reading. -1 means without end.
func duration(ms int64) string {
	if ms < 0 {
		return "never"
	}
	return millis.Duration(ms).String()
}
