package commands

import (
	"fmt"
	"strings"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/quote"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/service"
)

// maxKeysNamed bounds the keys that an error names.
const maxKeysNamed = 8

// failure returns the error of a command some of whose operations were not carried out, or nil. If others were carried
// out, the error says how many, and names the keys of those that were not. It never is an error after which nothing was
// changed. No other function maps the answers of several operations to an error.
func (s *Session) failure(ops []engine.Op, ds []engine.Decision) error {
	first, done, unknown, same := -1, 0, false, true
	for i := range ds {
		switch status := ds[i].Status; {
		case status == engine.OK && ds[i].Allowed == 0 && isCountSet(&ops[i]):
			return service.ErrKeyBlocked
		case status == engine.OK:
			done++
			continue
		default:
			unknown = unknown || limiter.OutcomeOfStatus(status).MayBeDone()
		}
		if first < 0 {
			first = i
		}
		same = same && ds[i] == ds[first]
	}
	if first < 0 {
		return nil
	}
	err := s.statusError(&ops[first], &ds[first])
	if done == 0 && (same || !unknown) || looksOnly(ops) {
		return err
	}
	return partFailure(ops, ds, done, err)
}

// partFailure returns the error of a command that was carried out in part. why is the first reason.
func partFailure(ops []engine.Op, ds []engine.Decision, done int, why error) error {
	var not, may []string
	prefix, reason, _ := strings.Cut(service.ErrorText(why), " ")
	for i := range ds {
		outcome := limiter.OutcomeOfStatus(ds[i].Status)
		if outcome != 0 { // a repetition may succeed
			prefix = "UNKNOWN"
		}
		switch {
		case outcome.MayBeDone():
			may = append(may, quote.Text(ops[i].Key))
		case ds[i].Status != engine.OK:
			not = append(not, quote.Text(ops[i].Key))
		}
	}
	text := fmt.Sprintf("%s %d of %d are done", prefix, done, len(ds))
	if len(not) > 0 {
		text += fmt.Sprintf(", %d are not (%s)", len(not), someOf(not))
	}
	if len(may) > 0 {
		text += fmt.Sprintf(", %d may be (%s)", len(may), someOf(may))
	}
	return resp.Error(text + "; the first because: " + reason)
}

// someOf joins the first names of a list.
func someOf(names []string) string {
	if len(names) > maxKeysNamed {
		return strings.Join(names[:maxKeysNamed], " ") + " and others"
	}
	return strings.Join(names, " ")
}

// looksOnly reports whether the operations change nothing.
func looksOnly(ops []engine.Op) bool {
	for i := range ops {
		read := ops[i].Code == engine.OpScript &&
			(ops[i].Script.ID == engine.TextLook || ops[i].Script.ID == engine.CountGet)
		if !ops[i].Dry && !read {
			return false
		}
	}
	return true
}
