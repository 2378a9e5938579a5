package keys

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/gomodule/redigo/redis"

	"github.com/weir-project/weir/internal/cli/policy"
	"github.com/weir-project/weir/internal/cli/terminal"
)

const (
	// policyKeyPrefix is the prefix of the names of policies' limiters.
	policyKeyPrefix = "policy|"
	// scanCount is how many keys one step of SCAN visits: enough for few round trips, and few enough that other clients
	// do not notice.
	scanCount = 1000
)

// server is a connection to a server whose keys are shown or changed.
type server struct{ conn redis.Conn }

// Status is one limiter, as RL.INSPECT describes it.
type Status struct {
	Key       string `redis:"-" json:"key"`
	Algorithm string `redis:"algorithm" json:"algorithm"`
	Rule      string `redis:"rule" json:"rule"`
	Limit     int64  `redis:"limit" json:"limit"`
	Used      int64  `redis:"used" json:"used"`
	Remaining int64  `redis:"remaining" json:"remaining"`
	IdleInMs  int64  `redis:"idle_in_ms" json:"idle_in_ms"`
	Blocked   bool   `redis:"blocked" json:"blocked"`
	BlockedMs int64  `redis:"blocked_ms" json:"blocked_ms"`
	Reason    string `redis:"reason" json:"reason"`
	PenaltyMs int64  `redis:"penalty_ms" json:"penalty_ms"`
	Holders   int64  `redis:"holders" json:"holders"`
	Bytes     int64  `redis:"bytes" json:"bytes"`
}

// each visits each key that matches a pattern once, until visit returns false.
func (s *server) each(pattern string, visit func(string) (more bool, err error)) error {
	seen := make(map[string]bool)
	for cursor, first := "0", true; first || cursor != "0"; first = false {
		reply, err := redis.Values(s.conn.Do("SCAN", cursor, "MATCH", pattern, "COUNT", scanCount))
		if err != nil {
			return err
		}
		var keys []string
		if _, err := redis.Scan(reply, &cursor, &keys); err != nil {
			return err
		}
		for _, key := range keys {
			if seen[key] {
				continue
			}
			seen[key] = true
			if more, err := visit(key); err != nil || !more {
				return err
			}
		}
	}
	return nil
}

// look describes a limiter. ok is false if the limiter is idle.
func (s *server) look(key string) (status Status, ok bool, err error) {
	fields, err := redis.Values(s.conn.Do("RL.INSPECT", key))
	if err != nil || len(fields) == 0 {
		return status, false, err
	}
	status.Key = key
	err = redis.ScanStruct(fields, &status)
	return status, err == nil, err
}

// reset forgets the usage of a key. With policies it also resets their limiters of the key.
func (s *server) reset(key string, policies bool) (had bool, err error) {
	names := []string{key}
	if policies {
		if names, err = s.limitersOf(key); err != nil {
			return false, err
		}
	}
	for _, name := range names { // one command for each name: RL.RESET could read a second name as its option ID
		one, err := redis.Bool(s.conn.Do("RL.RESET", name))
		if err != nil {
			return had, err
		}
		had = had || one
	}
	return had, nil
}

// limitersOf returns the names of the limiters that may count against a key.
func (s *server) limitersOf(key string) ([]string, error) {
	policies, err := (&policy.Server{Conn: s.conn}).Policies()
	if err != nil {
		return nil, err
	}
	names := []string{key}
	for i := range policies {
		limits := len(policies[i].Limits)
		for _, o := range policies[i].Overrides {
			limits = max(limits, len(o.Limits))
		}
		for at := range limits {
			names = append(names, policyKeyPrefix+policies[i].Name+"|"+strconv.Itoa(at)+"|"+key)
		}
	}
	return names, nil
}

func writeKeys(w io.Writer, found []Status, asJSON bool) error {
	if asJSON {
		return terminal.WriteJSON(w, found)
	}
	slices.SortFunc(found, func(a, b Status) int { return strings.Compare(a.Key, b.Key) })
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "KEY\tLIMIT\tUSED\tLEFT\tIDLE IN\tBLOCKED")
	for i := range found {
		k := &found[i]
		fmt.Fprintf(t, "%s\t%s %s\t%d\t%d\t%s\t%s\n", terminal.PlainText(k.Key), k.Algorithm, k.Rule, k.Used,
			k.Remaining, duration(k.IdleInMs), k.blockedText())
	}
	return t.Flush()
}

func (k *Status) blockedText() string {
	switch {
	case k.Blocked && k.BlockedMs < 0:
		return strings.TrimSpace("until it is lifted " + terminal.PlainText(k.Reason))
	case k.Blocked:
		return strings.TrimSpace("for " + duration(k.BlockedMs) + " " + terminal.PlainText(k.Reason))
	case k.PenaltyMs > 0:
		return "by a penalty, for " + duration(k.PenaltyMs)
	}
	return "no"
}
