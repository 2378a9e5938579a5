package httpapi

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/weir-project/weir/server/acl"
	"github.com/weir-project/weir/server/resp"
)

// The REST form of Upstash: a command is a JSON array, and its reply {"result": ...} or {"error": "..."}.

const (
	// maxRESTBytes bounds the body of a request: a string of 64 KiB, the default of --max-value-bytes, also if JSON
	// escapes each byte, beside other commands.
	maxRESTBytes = 1 << 20
	// maxRESTCommands bounds the commands of a request, and maxRESTWords their words together. Each word takes some 50
	// bytes of memory besides its own.
	maxRESTCommands = 1000
	maxRESTWords    = 16 << 10
)

const (
	errREST     = resp.Error(`ERR the body must be a JSON array of strings, numbers and booleans like ["INCR", "k"]`)
	errRESTList = resp.Error(`ERR the body must be a JSON array of commands like [["INCR", "k"], ["TTL", "k"]]`)
	errToken    = resp.Error("NOAUTH the REST form needs the header Authorization: Bearer TOKEN; the token is the " +
		"password of the user default, or NAME:PASSWORD of another user")
	errRESTOff = resp.Error("ERR the REST form is off: start weir with --http-rest (docs/http.md)")
)

var (
	errRESTLong = resp.Error(fmt.Sprintf("ERR a request has at most %d bytes", maxRESTBytes))
	errRESTMany = resp.Error(fmt.Sprintf("ERR a request has at most %d commands, and %d words in all", maxRESTCommands,
		maxRESTWords))
)

// restForm answers requests of the REST form.
type restForm struct{ *pageCommander }

// handleREST registers the paths of the REST form.
func handleREST(mux *http.ServeMux, by *pageCommander, on bool) {
	h := restForm{by}
	for path, read := range map[string]func(*restBody) ([][][]byte, error){
		"/{$}": (*restBody).command, "/pipeline": (*restBody).commands, "/multi-exec": (*restBody).commands,
	} {
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
			if !on {
				failREST(w, http.StatusNotFound, errRESTOff)
				return
			}
			h.answer(w, r, read)
		})
	}
}

// answer executes the commands that read finds in the body.
func (h restForm) answer(w http.ResponseWriter, r *http.Request, read func(*restBody) ([][][]byte, error)) {
	u, status, err := h.sender(r)
	if err != nil {
		failREST(w, status, err)
		return
	}
	commands, err := readREST(w, r, read)
	var replies []any
	if err == nil {
		replies, err = h.request(r, u, commands, r.URL.Path == "/multi-exec")
	}
	switch {
	case errors.Is(err, errClosing):
		failREST(w, http.StatusServiceUnavailable, err)
		return
	case err != nil:
		failREST(w, http.StatusBadRequest, err)
		return
	}
	answers := make([]map[string]any, len(replies))
	for i, reply := range replies {
		answers[i] = answerREST(reply, strings.EqualFold(r.Header.Get("Upstash-Encoding"), "base64"))
	}
	switch {
	case r.URL.Path != "/":
		writeREST(w, http.StatusOK, answers)
	case answers[0]["error"] != nil:
		writeREST(w, http.StatusBadRequest, answers[0])
	default:
		writeREST(w, http.StatusOK, answers[0])
	}
}

// sender authenticates a request. A page of another site cannot make a browser send a Bearer token: the browser would
// first ask weir for permission, and weir grants none. Without a password, isThisMachine also refuses a page whose DNS
// name points here.
func (h restForm) sender(r *http.Request) (u *acl.User, status int, err error) {
	scheme, _, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return nil, http.StatusUnauthorized, errToken
	}
	if err = http.NewCrossOriginProtection().Check(r); err != nil {
		return nil, http.StatusForbidden, resp.Error("ERR the request came from a page of another site")
	}
	if u, err = httpUser(h.Service, r); err != nil {
		return nil, http.StatusUnauthorized, err
	}
	if u.NoPassword && !isThisMachine(r) {
		return nil, http.StatusForbidden, resp.Error("NOAUTH " + errNotThisMachine.Error())
	}
	return u, 0, nil
}

func (h restForm) request(r *http.Request, u *acl.User, commands [][][]byte, atomic bool) ([]any, error) {
	h.running.RLock()
	defer h.running.RUnlock()
	if h.closed || h.Draining.Load() {
		return nil, errClosing
	}
	local := fmt.Sprint(r.Context().Value(http.LocalAddrContextKey))
	return h.hand.Request(r.Context(), r.RemoteAddr, local, u, commands, atomic)
}

// restBody reads the JSON of a request.
type restBody struct {
	*json.Decoder
	left int // words that may follow
}

// readREST reads the body. JSON that is not UTF-8 is refused, because the decoder would change it.
func readREST(w http.ResponseWriter, r *http.Request, read func(*restBody) ([][][]byte, error)) ([][][]byte, error) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRESTBytes))
	var tooLong *http.MaxBytesError
	switch {
	case errors.As(err, &tooLong):
		return nil, errRESTLong
	case err != nil:
		return nil, err
	case !utf8.Valid(text):
		return nil, errREST
	}
	b := &restBody{json.NewDecoder(bytes.NewReader(text)), maxRESTWords}
	b.UseNumber()
	commands, err := read(b)
	if err != nil {
		return nil, err
	}
	if _, err = b.Token(); !errors.Is(err, io.EOF) {
		return nil, errREST
	}
	return commands, nil
}

// command reads a body of one command.
func (b *restBody) command() ([][][]byte, error) {
	words, err := b.words()
	return [][][]byte{words}, err
}

// commands reads an array of commands.
func (b *restBody) commands() (all [][][]byte, err error) {
	if t, err := b.Token(); err != nil || t != json.Delim('[') {
		return nil, errRESTList
	}
	for b.More() {
		words, err := b.words()
		switch {
		case errors.Is(err, errREST):
			return nil, errRESTList
		case err != nil:
			return nil, err
		case len(all) == maxRESTCommands:
			return nil, errRESTMany
		}
		all = append(all, words)
	}
	if _, err = b.Token(); err != nil || len(all) == 0 {
		return nil, errRESTList
	}
	return all, nil
}

// words reads one command.
func (b *restBody) words() (words [][]byte, err error) {
	if t, err := b.Token(); err != nil || t != json.Delim('[') {
		return nil, errREST
	}
	for b.More() {
		if b.left--; b.left < 0 {
			return nil, errRESTMany
		}
		switch t, _ := b.Token(); t := t.(type) {
		case string:
			words = append(words, []byte(t))
		case json.Number:
			words = append(words, []byte(t))
		case bool:
			words = append(words, strconv.AppendBool(nil, t))
		default:
			return nil, errREST
		}
	}
	if _, err = b.Token(); err != nil || len(words) == 0 {
		return nil, errREST
	}
	return words, nil
}

// answerREST returns the answer to one command. encode asks for strings in base64, because JSON has no bytes. As at
// Upstash, an OK that is the whole reply is not encoded.
func answerREST(reply any, encode bool) map[string]any {
	if err, is := reply.(resp.Error); is {
		return map[string]any{"error": string(err)}
	}
	if encode && reply != "OK" {
		reply = encoded(reply)
	}
	return map[string]any{"result": reply}
}

// encoded returns a reply with its strings in base64.
func encoded(reply any) any {
	switch reply := reply.(type) {
	case string:
		return base64.StdEncoding.EncodeToString([]byte(reply))
	case []any:
		for i := range reply {
			reply[i] = encoded(reply[i])
		}
	}
	return reply
}

func failREST(w http.ResponseWriter, status int, err error) {
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="weir"`)
	}
	writeREST(w, status, map[string]any{"error": err.Error()})
}

func writeREST(w http.ResponseWriter, status int, answer any) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer)
}
