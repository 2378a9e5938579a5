package migrate

import (
	"cmp"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/server/commands"
	"github.com/weir-project/weir/server/scripts"
	"github.com/weir-project/weir/server/service"
)

const (
	// maxClients bounds the sessions of a trial. The clients beyond it share one.
	maxClients = 4096
	// maxScripts bounds the scripts that a trial counts. It is far more than any library has.
	maxScripts = 1024
	// trialMemory bounds the limiters of a trial. The table evicts beyond it.
	trialMemory = 64 << 20
)

// trial is a weir in memory to which commands of others are sent, to see which of them it refuses. It uses the
// sessions, the commands and the scripts of every server, and opens no port.
type trial struct {
	node    *persistence.Node
	server  *commands.Shared
	clients map[string]*client
	scripts map[string]*scriptUse // by SHA-1
	seen    int64
	unread  int64 // lines that are no commands
}

// client is a client of the other server.
type client struct {
	session *commands.Local
	db      string // the last database that the other server showed
}

// scriptUse is a recognised script.
type scriptUse struct {
	SHA1  string `json:"sha1"`
	Name  string `json:"name"` // as its library calls it
	Count int64  `json:"count"`
}

func newTrial() (*trial, error) {
	silent := slog.New(slog.NewTextHandler(io.Discard, nil))
	table := engine.Options{MaxMemoryBytes: trialMemory}
	node, err := persistence.Open(persistence.Options{Logger: silent, Table: table})
	if err != nil {
		return nil, err
	}
	server, err := commands.NewShared(commands.Config{Logger: silent}, node)
	if err != nil {
		return nil, errors.Join(err, node.Close())
	}
	server.Unsupported.AtOnce = true // MONITOR shows no text after EVALSHA: the other server has it
	t := &trial{node: node, server: server, clients: make(map[string]*client), scripts: make(map[string]*scriptUse)}
	return t, nil
}

func (t *trial) close() {
	for _, c := range t.clients {
		c.session.Close()
	}
	t.node.Close()
}

// notTried are commands that would act on the trial itself, or let a session wait.
var notTried = []string{"MONITOR", "SHUTDOWN", "CLIENT PAUSE", "WAIT", "RL.WAIT", "RL.EVENTS", "XREAD", "BGSAVE",
	"SAVE"}

// send tries a command. Commands within scripts are left out, because the script itself is tried.
func (t *trial) send(e entry) {
	name := strings.ToUpper(e.args[0])
	if len(e.args) > 1 {
		if slices.Contains(notTried, name+" "+strings.ToUpper(e.args[1])) {
			return
		}
	}
	if e.addr == "lua" || slices.Contains(notTried, name) {
		return
	}
	t.seen++
	c := t.clientAt(e.addr)
	if e.db != c.db && name != "SELECT" {
		_, _ = c.session.Do("SELECT", e.db) // a refusal is in the report
	}
	c.db = e.db
	if _, err := c.session.Do(e.args...); err == nil && (name == "EVAL" || name == "EVALSHA") {
		t.recognised(name, e.args[1])
	}
}

func (t *trial) clientAt(addr string) *client {
	if len(t.clients) >= maxClients && t.clients[addr] == nil {
		addr = "others"
	}
	c := t.clients[addr]
	if c == nil {
		c = &client{t.server.Local(addr), "0"}
		t.clients[addr] = c
	}
	return c
}

// recognised counts a call of a script that weir has executed.
func (t *trial) recognised(name, text string) {
	script, sum := scripts.Known.OfSum([]byte(text)), strings.ToLower(text)
	if name == "EVAL" {
		var hash scripts.Sum
		script, hash = scripts.Known.OfText([]byte(text))
		sum = hex.EncodeToString(hash[:])
	}
	use := t.scripts[sum]
	if use == nil && script != nil && len(t.scripts) < maxScripts {
		use = &scriptUse{SHA1: sum, Name: script.Name}
		t.scripts[sum] = use
	}
	if use != nil {
		use.Count++
	}
}

// report is what a trial has seen.
type report struct {
	Seen     int64                    `json:"commands"`
	Clients  int                      `json:"clients"`
	Refused  int64                    `json:"refused"`
	Unread   int64                    `json:"unread"` // lines of MONITOR
	Requests []service.UnsupportedUse `json:"unsupported"`
	Scripts  []*scriptUse             `json:"scripts"` // the recognised ones
}

func (t *trial) report() *report {
	r := &report{Seen: t.seen, Clients: len(t.clients), Unread: t.unread, Requests: t.server.Unsupported.List(),
		Scripts: []*scriptUse{}}
	for _, n := range t.server.Unsupported.Counts() {
		r.Refused += n
	}
	slices.SortStableFunc(r.Requests, func(a, b service.UnsupportedUse) int { return cmp.Compare(b.Count, a.Count) })
	for _, use := range t.scripts {
		r.Scripts = append(r.Scripts, use)
	}
	slices.SortFunc(r.Scripts, func(a, b *scriptUse) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.SHA1, b.SHA1))
	})
	return r
}
