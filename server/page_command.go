package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/tidwall/redcon"
)

const (
	// maxPageCommand bounds the JSON of a command from the page: a decision over several
	// keys of the greatest length.
	maxPageCommand = 16 << 10
	// maxPageArgs bounds its words.
	maxPageArgs = 256
)

// pageCommands are what the page may send: what one does about a key.
var pageCommands = []string{"rl.explain", "rl.reset", "rl.block", "rl.unblock"}

const (
	errNotAPageCommand = replyError("ERR the page sends RL.EXPLAIN, RL.RESET, RL.BLOCK and RL.UNBLOCK only")
	errClosing         = replyError("ERR the server is stopping")
)

// pageCommander carries out commands of the page as a client's: with the same users,
// arguments, answers, and lines in the audit log.
type pageCommander struct {
	srv *Server
	// running is held while a command is carried out, and taken by close: none reaches
	// the limiter behind that.
	running sync.RWMutex
	closed  bool
}

func (p *pageCommander) close() {
	p.running.Lock()
	defer p.running.Unlock()
	p.closed = true
}

// answer takes {"args": ["RL.BLOCK", ...]} and answers {"reply": ...} or
// {"error": "..."}. A page of another host cannot have a browser send it: it would need an
// Origin of this one, and permission to send JSON. A page whose name was pointed here has
// that Origin, but no password, and names another host.
func (p *pageCommander) answer(w http.ResponseWriter, r *http.Request, u *user) {
	switch {
	case u.nopass && !isThisMachine(r):
		writePlain(w, http.StatusForbidden, errNotThisMachine.Error())
		return
	case http.NewCrossOriginProtection().Check(r) != nil:
		writePlain(w, http.StatusForbidden, "this came from a page of another host")
		return
	case r.Header.Get("Content-Type") != "application/json":
		writePlain(w, http.StatusUnsupportedMediaType, "a command comes as application/json")
		return
	}
	var command struct{ Args []string }
	body := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxPageCommand))
	if err := body.Decode(&command); err != nil || len(command.Args) == 0 || len(command.Args) > maxPageArgs {
		writePlain(w, http.StatusBadRequest, `a command is like {"args": ["RL.UNBLOCK", "user:42"]}`)
		return
	}
	writeJSON(w, p.do(&pageClient{p.srv.lastID.Add(1), r}, u, command.Args))
}

// do sends one command in a session of its own.
func (p *pageCommander) do(c *pageClient, u *user, words []string) map[string]any {
	p.running.RLock()
	defer p.running.RUnlock()
	if p.closed || p.srv.draining.Load() {
		return map[string]any{"error": string(errClosing)}
	}
	args := make([][]byte, len(words))
	for i, word := range words {
		args[i] = []byte(word)
	}
	s := newSession(p.srv, c)
	defer s.close()
	s.become(u)
	cmd, err := p.srv.state.table.resolve(args)
	switch {
	case err != nil:
		s.fail(err)
	case !slices.Contains(pageCommands, cmd.full):
		s.fail(errNotAPageCommand)
	default:
		// What a person does by hand is for the log, also what applications do all day.
		if cmd.write && !cmd.audited && s.allowed(cmd, args) == nil {
			s.audit(cmd, args)
		}
		s.do(args)
		s.settle()
	}
	return replyJSON(s.out)
}

// replyJSON is a reply in RESP2 as JSON.
func replyJSON(out []byte) map[string]any {
	_, reply := redcon.ReadNextRESP(out)
	if reply.Type == redcon.Error {
		return map[string]any{"error": string(reply.Data)}
	}
	return map[string]any{"reply": respValue(reply)}
}

func respValue(r redcon.RESP) any {
	switch r.Type {
	case redcon.Integer:
		return r.Int()
	case redcon.Array:
		all := make([]any, 0, r.Count)
		r.ForEach(func(one redcon.RESP) bool {
			all = append(all, respValue(one))
			return true
		})
		return all
	}
	return string(r.Data)
}

// pageClient is the browser under a session.
type pageClient struct {
	id int64
	r  *http.Request
}

func (c *pageClient) ID() int64          { return c.id }
func (c *pageClient) RemoteAddr() string { return c.r.RemoteAddr }
func (c *pageClient) LocalAddr() string {
	return fmt.Sprint(c.r.Context().Value(http.LocalAddrContextKey))
}
func (c *pageClient) Kill()                                {} // it is over when its command is
func (c *pageClient) Push([]byte) bool                     { return false }
func (c *pageClient) MayBlock()                            {}
func (c *pageClient) Hold(wait func(gone <-chan struct{})) { wait(c.r.Context().Done()) }
