package httpapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/httpfields"
	"github.com/weir-project/weir/limits"
	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/service"
)

const (
	// statusHeader carries the actual status if deny_status selects another.
	statusHeader = "X-Weir-Status"
	forwardedFor = "X-Forwarded-For"
)

// checkRequest is a parsed check.
type checkRequest struct {
	op          engine.Op
	denyStatus  int
	errorStatus int
	style       httpfields.Style
	fromPeer    bool // the header of from_header has no address
}

// checkStyles maps the values of the parameter fields.
var checkStyles = map[string]httpfields.Style{
	"": httpfields.IETF | httpfields.XEpoch, "ietf": httpfields.IETF,
	"x": httpfields.XEpoch, "x-delta": httpfields.XDelta, "none": httpfields.None,
}

func readCheck(r *http.Request) (*checkRequest, error) {
	params, key, err := checkQuery(r.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	inPath := strings.Trim(strings.TrimPrefix(r.URL.Path, checkPath), "/")
	if err := givenOnce(inPath, params); err != nil {
		return nil, err
	}
	q := &checkRequest{op: engine.Op{Code: engine.OpCheck}}
	policy := cmp.Or(inPath, params["policy"], headerNamed(r, params["policy_header"]))
	if key == "" && params["key_header"] != "" {
		key = cmp.Or(lastOf(r, params["key_header"]), service.AnonymousKey)
	}
	if header := params["from_header"]; header != "" {
		q.op.From, q.fromPeer = fromOf(r, header)
	}
	cost := cmp.Or(params["cost"], headerNamed(r, params["cost_header"]), "1")
	q.op.Text, q.op.Key = []byte(policy), []byte(arg.KeyOf(key))
	if err := arg.CheckText("policy", q.op.Text, engine.MaxPolicyLen); err != nil {
		return nil, err
	}
	if engine.Reserved(q.op.Key) {
		return nil, arg.ErrReservedKey
	}
	if err := arg.CheckKey(q.op.Key); err != nil {
		return nil, err
	}
	if q.op.Cost, err = limits.Units("cost", []byte(cost), 0, engine.MaxUnits); err != nil {
		return nil, err
	}
	if q.op.High, err = highPriority(
		cmp.Or(params["priority"], headerNamed(r, params["priority_header"]))); err != nil {
		return nil, err
	}
	return q, q.readAnswers(params)
}

// fromOf returns the key of the block of the client's address. If the header has no address, the address of the
// connection counts, and fromPeer is true: a block is never skipped.
func fromOf(r *http.Request, header string) (from []byte, fromPeer bool) {
	client, ok := arg.Client(lastOf(r, header))
	if !ok {
		if client, ok = arg.Client(r.RemoteAddr); !ok { // a Unix socket
			return nil, true
		}
		fromPeer = true
	}
	return []byte(arg.AddressPrefix + client), fromPeer
}

// highPriority parses a priority. Empty is normal.
func highPriority(text string) (high bool, err error) {
	switch {
	case strings.EqualFold(text, "high"):
		return true, nil
	case text == "" || strings.EqualFold(text, "normal"):
		return false, nil
	}
	return false, limits.Bad("priority", "must be high or normal", []byte(text))
}

// givenOnce rejects a URL that names the policy, the cost or the priority twice, because one of them would have no
// effect.
func givenOnce(inPath string, params map[string]string) error {
	switch {
	case inPath != "" && params["policy"] != "":
		return resp.Error("ERR policy is given twice: in the path and as policy")
	case inPath != "" && params["policy_header"] != "":
		return resp.Error("ERR policy is given twice: in the path and as policy_header")
	case params["policy"] != "" && params["policy_header"] != "":
		return resp.Error("ERR policy is given twice: as policy and as policy_header")
	case params["cost"] != "" && params["cost_header"] != "":
		return resp.Error("ERR cost is given twice: as cost and as cost_header")
	case params["priority"] != "" && params["priority_header"] != "":
		return resp.Error("ERR priority is given twice: as priority and as priority_header")
	}
	return nil
}

// readAnswers parses the parameters that select the answer.
func (q *checkRequest) readAnswers(params map[string]string) (err error) {
	if q.denyStatus, err = statusParam("deny_status", params, http.StatusTooManyRequests, 400); err != nil {
		return err
	}
	if q.errorStatus, err = statusParam("error_status", params, http.StatusServiceUnavailable, 200); err != nil {
		return err
	}
	style, known := checkStyles[params["fields"]]
	if !known {
		return limits.Bad("fields", "must be ietf, x, x-delta or none", []byte(params["fields"]))
	}
	q.style = style
	return nil
}

func headerNamed(r *http.Request, name string) string {
	if name == "" {
		return ""
	}
	return r.Header.Get(name)
}

// lastOf returns a header's value. For X-Forwarded-For it returns the last address, which the asking proxy itself
// added.
func lastOf(r *http.Request, name string) string {
	if !strings.EqualFold(name, forwardedFor) {
		return r.Header.Get(name)
	}
	lines := r.Header[forwardedFor]
	if len(lines) == 0 {
		return ""
	}
	last := lines[len(lines)-1]
	return arg.WithoutPort(strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:]))
}

func statusParam(name string, params map[string]string, standard, least int) (int, error) {
	text, given := params[name]
	if !given {
		return standard, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > 599 || n/100 == 3 {
		return 0, limits.Bad(name, fmt.Sprintf("must be an HTTP status from %d to 599 and not a redirect", least),
			[]byte(text))
	}
	return n, nil
}

// deny answers a denial. The answer has a problem document, unless the proxy selects another status. An answer with
// another status has no body, because nginx reads only its header and would close the connection.
func (q *checkRequest) deny(w http.ResponseWriter, quota httpfields.Quota) {
	quota.Set(w.Header(), q.style, time.Now())
	w.Header().Set(statusHeader, strconv.Itoa(http.StatusTooManyRequests))
	if q.denyStatus != http.StatusTooManyRequests {
		w.WriteHeader(q.denyStatus)
		return
	}
	w.Header().Set("Content-Type", httpfields.ProblemContentType)
	w.WriteHeader(q.denyStatus)
	_ = json.NewEncoder(w).Encode(quota.Problem(http.StatusTooManyRequests))
}
