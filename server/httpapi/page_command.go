package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/weir-project/weir/server/acl"
	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/service"
)

const (
	// MaxPageCommand bounds the JSON of a page command. It allows a decision over several keys of maximum length.
	MaxPageCommand = 16 << 10
	// MaxPageArgs bounds the arguments of a page command.
	MaxPageArgs = 256
)

const errClosing = resp.Error("ERR the server is stopping")

// Hand executes commands for clients of the HTTP port.
type Hand interface {
	// ByHand executes a command of a user as for a Redis client, and returns the reply as a value for JSON, or the
	// error reply. It executes the commands with which a person manages a key, and refuses all others. Both addresses
	// are for the logs. When ctx ends, the caller no longer needs the reply.
	ByHand(ctx context.Context, remoteAddr, localAddr string, u *acl.User, args [][]byte) (reply any, err error)
	// Request executes the commands of a request of the REST form, as one transaction if atomic is set. It returns the
	// reply to each, or the error that refused the transaction. The parameters are those of ByHand.
	Request(ctx context.Context, remoteAddr, localAddr string, u *acl.User, commands [][][]byte, atomic bool) (
		replies []any, err error)
}

// pageCommander executes commands of the page as for a Redis client: with the same users, arguments, replies and audit
// log.
type pageCommander struct {
	*service.Service
	*gate
	hand Hand
}

// answer accepts {"args": ["RL.BLOCK", ...]} and answers {"reply": ...} or {"error": "..."}. A page of another host
// cannot make a browser send it: the Origin differs, and JSON needs permission. Without a password, isThisMachine also
// refuses a page whose DNS name points here.
func (p *pageCommander) answer(w http.ResponseWriter, r *http.Request, u *acl.User) {
	switch {
	case u.NoPassword && !isThisMachine(r):
		writePlain(w, http.StatusForbidden, errNotThisMachine.Error())
		return
	case http.NewCrossOriginProtection().Check(r) != nil:
		writePlain(w, http.StatusForbidden, "the request came from a page of another host")
		return
	case r.Header.Get("Content-Type") != "application/json":
		writePlain(w, http.StatusUnsupportedMediaType, "a command must be sent as application/json")
		return
	}
	var command struct{ Args []string }
	body := json.NewDecoder(http.MaxBytesReader(w, r.Body, MaxPageCommand))
	if err := body.Decode(&command); err != nil || len(command.Args) == 0 || len(command.Args) > MaxPageArgs {
		writePlain(w, http.StatusBadRequest, `a command must be like {"args": ["RL.UNBLOCK", "user:42"]}`)
		return
	}
	writeJSON(w, p.do(r, u, command.Args))
}

// do executes one command.
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
	reply, err := p.hand.ByHand(r.Context(), r.RemoteAddr, local, u, args)
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	return map[string]any{"reply": reply}
}
