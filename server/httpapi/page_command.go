package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	"github.com/tidwall/redcon"

	"github.com/weir-project/weir/server/acl"
	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/service"
)

const (
	// MaxPageCommand bounds the JSON of a command from the page: a decision over several
	// keys of the greatest length.
	MaxPageCommand = 16 << 10
	// MaxPageArgs bounds its words.
	MaxPageArgs = 256
)

const errClosing = resp.Error("ERR the server is stopping")

// Hand carries out a command that somebody sends by hand.
type Hand interface {
	// ByHand carries out a command of a user as a client's, and returns the reply in
	// RESP2. It carries out what one does about a key, and refuses everything else. Both
	// addresses are for the logs; when ctx ends nobody waits for the reply any more.
	ByHand(ctx context.Context, remoteAddr, localAddr string, u *acl.User, args [][]byte) []byte
}

// pageCommander carries out commands of the page as a client's: with the same users,
// arguments, answers, and lines in the audit log.
type pageCommander struct {
	*service.Service
	hand Hand
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
func (p *pageCommander) answer(w http.ResponseWriter, r *http.Request, u *acl.User) {
	switch {
	case u.NoPassword && !isThisMachine(r):
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
	body := json.NewDecoder(http.MaxBytesReader(w, r.Body, MaxPageCommand))
	if err := body.Decode(&command); err != nil || len(command.Args) == 0 || len(command.Args) > MaxPageArgs {
		writePlain(w, http.StatusBadRequest, `a command is like {"args": ["RL.UNBLOCK", "user:42"]}`)
		return
	}
	writeJSON(w, p.do(r, u, command.Args))
}

// do sends one command.
func (p *pageCommander) do(r *http.Request, u *acl.User, words []string) map[string]any {
	p.running.RLock()
	defer p.running.RUnlock()
	if p.closed || p.Draining.Load() {
		return map[string]any{"error": string(errClosing)}
	}
	args := make([][]byte, len(words))
	for i, word := range words {
		args[i] = []byte(word)
	}
	local := fmt.Sprint(r.Context().Value(http.LocalAddrContextKey))
	return replyJSON(p.hand.ByHand(r.Context(), r.RemoteAddr, local, u, args))
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
