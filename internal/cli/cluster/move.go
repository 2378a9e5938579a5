package cluster

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

// stepEvery is the pause between two steps of a move. Tests make it shorter.
var stepEvery = 250 * time.Millisecond

// stuckAfter is how long a move may make no step before the command gives up.
const stuckAfter = 2 * time.Minute

type moveCmd struct {
	Group int    `arg:"" help:"The Raft group, counted from 0."`
	From  string `arg:"" help:"The id of the node that gives its replica away; - for a group that has too few."`
	To    string `arg:"" help:"The id of the node that gets a replica; - for a group that has too many."`
}

func (m *moveCmd) Run(c *Command) error { return m.run(os.Stdout, c) }

// run repeats the steps of the move until it is done. What a stopped command has begun, the same command finishes.
func (m *moveCmd) run(w io.Writer, c *Command) error {
	last, since := "", time.Now()
	for {
		done, step, err := m.step(c)
		switch {
		case err != nil && !again(err):
			return err
		case err != nil:
			step = "waiting: " + err.Error()
		case done:
			_, err := fmt.Fprintf(w, "group %d: the move from %s to %s is done\n", m.Group, m.From, m.To)
			return err
		}
		if step != last {
			if _, err := fmt.Fprintf(w, "group %d: %s\n", m.Group, step); err != nil {
				return err
			}
			last, since = step, time.Now()
		}
		if time.Since(since) > stuckAfter {
			return fmt.Errorf("group %d has made no step for %v (%s): run the command again, or undo the move with "+
				"weir cluster move %d %s %s", m.Group, stuckAfter, step, m.Group, m.To, m.From)
		}
		time.Sleep(stepEvery)
	}
}

// step makes one step.
func (m *moveCmd) step(c *Command) (done bool, step string, err error) {
	reply, err := c.ask("MOVE", strconv.Itoa(m.Group), m.From, m.To)
	if err != nil {
		return false, "", err
	}
	var state struct {
		Done int64  `redis:"done"`
		Step string `redis:"step"`
	}
	fields, err := redis.Values(reply, nil)
	if err == nil {
		err = redis.ScanStruct(fields, &state)
	}
	if err != nil {
		return false, "", fmt.Errorf("%s sent an unexpected state of a move: %w", c.Addr, err)
	}
	return state.Done == 1, state.Step, nil
}

// again reports whether a step may be tried again: the group has no leader for a moment, or the outcome is unknown.
func again(err error) bool {
	for _, word := range []string{"TRYAGAIN", "CLUSTERDOWN", "UNKNOWN", "OVERLOADED"} {
		if strings.Contains(err.Error(), word+" ") {
			return true
		}
	}
	return false
}
