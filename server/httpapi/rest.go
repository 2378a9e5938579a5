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
	errREST     = resp.Error("ERR the body must be a JSON array of strings, numbers and booleans like [\"INCR\", \"k\"]")
	errRESTList = resp.Error("ERR the body must be a JSON array of commands like [[\"INCR\", \"k\"], [\"TTL\", \"k\"]]")
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
	for path, answer := range map[string]http.HandlerFunc{
		"/{$}": h.answerOne, "/pipeline": h.answerPipeline, "/multi-exec": h.answerTransaction,
	} {
		if !on {
			answer = func(w http.ResponseWriter, _ *http.Request) { failREST(w, http.StatusNotFound, errRESTOff) }
		}
		mux.HandleFunc("POST "+path, answer)
	}
}

func (h restForm) answerOne(w http.ResponseWriter, r *http.Request) {
	replies := h.run(w, r, false, func(b *restBody) ([][][]byte, error) {
		words, err := b.words()
		return [][][]byte{words}, err
	})
	if replies == nil {
		return
	}
	answer, status := answerREST(replies[0], wantsBase64(r)), http.StatusOK
	if answer["error"] != nil {
		status = http.StatusBadRequest
	}
	writeREST(w, status, answer)
}

func (h restForm) answerPipeline(w http.ResponseWriter, r *http.Request) { h.answerMany(w, r, false) }

func (h restForm) answerTransaction(w http.ResponseWriter, r *http.Request) { h.answerMany(w, r, true) }

func (h restForm) answerMany(w http.ResponseWriter, r *http.Request, atomic bool) {
	replies := h.run(w, r, atomic, (*restBody).commands)
	if replies == nil {
		return
	}
	answers := make([]map[string]any, len(replies))
	for i, reply := range replies {
		answers[i] = answerREST(reply, wantsBase64(r))
	}
	writeREST(w, http.StatusOK, answers)
}

// run executes the commands that read finds in the body. It returns nil if it has answered the request itself.
func (h restForm) run(w http.ResponseWriter, r *http.Request, atomic bool,
	read func(*restBody) ([][][]byte, error)) []any {
	u, status, err := h.sender(r)
	if err != nil {
		failREST(w, status, err)
		return nil
	}
	commands, err := readREST(w, r, read)
	var replies []any
	if err == nil {
		replies, err = h.request(r, u, commands, atomic)
	}
	switch {
	case errors.Is(err, errClosing):
		failREST(w, http.StatusServiceUnavailable, err)
	case err != nil:
		failREST(w, http.StatusBadRequest, err)
	}
	return replies
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

// wantsBase64 reports whether strings in replies are to be encoded, because JSON has no bytes.
func wantsBase64(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upstash-Encoding"), "base64")
}

// answerREST returns the answer to one command. As at Upstash, an OK that is the whole reply is not encoded.
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
