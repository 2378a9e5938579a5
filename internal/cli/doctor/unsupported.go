package doctor

import (
	"fmt"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

const (
	// recently is how long ago a refused request still matters: a program that was corrected since then sends no more.
	recently = 24 * time.Hour
	// usesShown bounds the lines about refused requests.
	usesShown = 50
)

// use is an element of WEIR.UNSUPPORTED.
type use struct {
	Kind    string `redis:"kind"`
	Command string `redis:"command"`
	SHA1    string `redis:"sha1"`
	Client  string `redis:"client"`
	Library string `redis:"library"`
	Addr    string `redis:"addr"`
	Count   int64  `redis:"count"`
	LastMs  int64  `redis:"last_ms"`
	Advice  string `redis:"advice"`
}

// lookAtUnsupported asks the server which requests it refused because it does not support them.
func (d *Subject) lookAtUnsupported(up *running) []Finding {
	if up == nil {
		return nil
	}
	replies, err := redis.Values(up.conn.Do("WEIR.UNSUPPORTED"))
	switch {
	case err != nil && strings.Contains(err.Error(), "unknown command"):
		return nil // an older version
	case err != nil:
		return []Finding{{Doubt, "clients", "the server answers " + oneLine(err),
			"log in as a user that may send WEIR.UNSUPPORTED: --user and --password-file"}}
	}
	var uses []use
	for _, reply := range replies {
		var u use
		fields, err := redis.Values(reply, nil)
		if err == nil {
			err = redis.ScanStruct(fields, &u)
		}
		if err != nil {
			return []Finding{{Wrong, "clients", "the server sent an unexpected list: " + oneLine(err),
				"use the same version of weir as the server"}}
		}
		uses = append(uses, u)
	}
	return judgeUses(uses, time.Now())
}

// judgeUses has a line for each request that was refused recently.
func judgeUses(uses []use, now time.Time) (found []Finding) {
	more := 0
	for _, u := range uses {
		ago := now.Sub(time.UnixMilli(u.LastMs))
		switch {
		case ago > recently:
			continue
		case len(found) == usesShown:
			more++
			continue
		}
		found = append(found, Finding{Doubt, "clients", fmt.Sprintf(
			"%s sent %s, which weir does not support: %d times, the last %v ago", u.sender(), u.request(), u.Count,
			max(ago, 0).Round(time.Second)), u.Advice})
	}
	switch {
	case more > 0:
		return append(found, Finding{Doubt, "clients", fmt.Sprintf("%d more requests were refused", more),
			"send WEIR.UNSUPPORTED to see them"})
	case len(found) == 0:
		return []Finding{{Fine, "clients", "this node refused nothing as unsupported in the last 24 hours", ""}}
	}
	return found
}

// sender names the client of a request in all known ways.
func (u *use) sender() string {
	var names []string
	for _, name := range []string{u.Client, u.Library, u.Addr} {
		if name != "" {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// request names what was sent.
func (u *use) request() string {
	name := strings.ToUpper(strings.ReplaceAll(u.Command, "|", " "))
	switch {
	case u.SHA1 != "":
		return "the script " + u.SHA1
	case u.Command == "other":
		return "a command that Redis does not have either"
	}
	return name + " (" + u.Kind + ")"
}
