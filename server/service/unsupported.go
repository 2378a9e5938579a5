package service

import (
	"cmp"
	"maps"
	"math"
	"net"
	"slices"
	"sync"
	"time"
)

// Kinds of requests that weir refuses although Redis, or another version of weir, would carry them out.
const (
	LacksCommand    = "command"    // weir has no such command
	LacksSubcommand = "subcommand" // the command has no such subcommand
	LacksOption     = "option"     // the command has no such option, or another number of arguments
	LacksScript     = "script"     // weir does not recognise the script
	LacksDatabase   = "database"   // weir has no database with this number
	RefusesCommand  = "refused"    // weir knows the command and refuses it on purpose
	PassesBound     = "bound"      // a key, a value or a transaction is larger than weir accepts
)

// UnsupportedKinds are all kinds.
var UnsupportedKinds = []string{
	LacksCommand, LacksSubcommand, LacksOption, LacksScript, LacksDatabase, RefusesCommand, PassesBound,
}

// OtherCommand stands for a name that is not on the list of commands: it may be anything, also a secret.
const OtherCommand = "other"

const (
	// maxUnsupported bounds the remembered pairs of a client and a request. It is more than an operator reads, and at
	// most 200 KB. Beyond it weir forgets the pair that was refused longest ago.
	maxUnsupported = 256
	// maxUnsupportedLogs bounds the log lines an hour: a client may send any number of different scripts or names.
	maxUnsupportedLogs = 100
	// scriptGrace is how long EVALSHA of an unknown SHA-1 is no problem: libraries then send the text of the script,
	// which weir may recognise.
	scriptGrace = 5 * time.Second
)

// Unsupported is a request that weir refuses because it does not support it. It contains no argument of the client
// besides the SHA-1 of a script.
type Unsupported struct {
	Kind    string `json:"kind"`
	Command string `json:"command"`        // in lower case, like "client|tracking", or OtherCommand
	SHA1    string `json:"sha1,omitempty"` // of a script
	Advice  string `json:"advice"`         // what to do
	// Retried: the client will probably send the request in another form at once, so the first refusal is no problem.
	Retried bool `json:"-"`
}

// UnsupportedUse is a request that weir refused, and the client that sent it.
type UnsupportedUse struct {
	Unsupported
	Client  string `json:"client"`  // name that the client gave itself; may be empty
	Library string `json:"library"` // with its version; may be empty
	Addr    string `json:"addr"`    // host and port of the last one
	User    string `json:"user"`
	Count   int64  `json:"count"`
	LastMs  int64  `json:"last_ms"` // Unix

	firstMs int64
}

// By returns the client's name, else its library, else its host.
func (u *UnsupportedUse) By() string {
	host, _, err := net.SplitHostPort(u.Addr)
	if err != nil {
		host = u.Addr
	}
	return cmp.Or(u.Client, u.Library, host)
}

// unsupportedKey identifies a pair: who sent what. A script is the same by EVAL, EVALSHA and SCRIPT LOAD.
type unsupportedKey struct{ by, kind, command, sha1 string }

// UnsupportedUses counts and remembers what weir refused because it does not support it, by client. Only errors touch
// it.
type UnsupportedUses struct {
	// AtOnce counts EVALSHA of an unknown SHA-1 at once. It is set before the first request.
	AtOnce bool

	mu     sync.Mutex
	counts map[[2]string]int64 // by kind and command
	uses   map[unsupportedKey]*UnsupportedUse

	hour   time.Time // when the hour of logged began
	logged int       // new pairs in that hour
}

func newUnsupportedUses() *UnsupportedUses {
	return &UnsupportedUses{counts: make(map[[2]string]int64), uses: make(map[unsupportedKey]*UnsupportedUse)}
}

// Refuse counts a request of a client that has logged in, and logs the first one of each client and request.
func (s *Service) Refuse(who *Client, what Unsupported) {
	use := who.using(what)
	switch line := s.Unsupported.add(&use, time.Now()); {
	case line == 0:
	case line <= maxUnsupportedLogs:
		s.Log.Warn("weir refused a client's request, because it does not support it", "kind", use.Kind,
			"command", use.Command, "sha1", use.SHA1, "client", use.Client, "library", use.Library, "addr", use.Addr,
			"user", use.User, "do", use.Advice)
	case line == maxUnsupportedLogs+1:
		s.Log.Warn("weir refused more different requests than it logs an hour",
			"do", "weir doctor lists them, and weir_unsupported_commands_total counts them")
	}
}

// using describes a request of the client.
func (i *Client) using(what Unsupported) UnsupportedUse {
	i.mu.Lock()
	defer i.mu.Unlock()
	library := i.LibName
	if library != "" && i.LibVer != "" {
		library += " " + i.LibVer
	}
	return UnsupportedUse{Unsupported: what, Client: i.Name, Library: library, Addr: i.Addr, User: i.User}
}

// add counts a use. It returns 0 for a known pair, and otherwise the number of new pairs in this hour.
func (t *UnsupportedUses) add(use *UnsupportedUse, now time.Time) (line int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := unsupportedKey{use.By(), use.Kind, use.Command, use.SHA1}
	if use.SHA1 != "" {
		key.command = ""
	}
	known := t.uses[key]
	if known == nil {
		t.makeRoom()
		known = &UnsupportedUse{firstMs: now.UnixMilli(), LastMs: now.UnixMilli()}
		t.uses[key] = known
	}
	count, firstMs := known.Count, known.firstMs
	if use.Retried && !t.AtOnce && count == 0 && now.UnixMilli()-firstMs < scriptGrace.Milliseconds() {
		return 0
	}
	what := use.Unsupported
	if use.Retried && count > 0 { // the refusal of the text says more
		what = known.Unsupported
	}
	*known = *use
	known.Unsupported = what
	known.Count, known.firstMs, known.LastMs = count+1, firstMs, now.UnixMilli()
	t.counts[[2]string{use.Kind, use.Command}]++
	if count > 0 {
		return 0
	}
	if now.Sub(t.hour) >= time.Hour {
		t.hour, t.logged = now, 0
	}
	t.logged++
	return t.logged
}

// makeRoom forgets the pair that was refused longest ago, if the table is full.
func (t *UnsupportedUses) makeRoom() {
	if len(t.uses) < maxUnsupported {
		return
	}
	var oldest unsupportedKey
	at := int64(math.MaxInt64)
	for key, use := range t.uses {
		if use.LastMs < at {
			oldest, at = key, use.LastMs
		}
	}
	delete(t.uses, oldest)
}

// Counts returns the number of refused requests by kind and command, since the start. The caller owns the map.
func (t *UnsupportedUses) Counts() map[[2]string]int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.counts)
}

// List returns the remembered pairs, the last refused first.
func (t *UnsupportedUses) List() []UnsupportedUse {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := []UnsupportedUse{}
	for _, use := range t.uses {
		if use.Count > 0 {
			list = append(list, *use)
		}
	}
	slices.SortFunc(list, func(a, b UnsupportedUse) int {
		return cmp.Or(cmp.Compare(b.LastMs, a.LastMs), cmp.Compare(a.Command, b.Command), cmp.Compare(a.By(), b.By()))
	})
	return list
}
