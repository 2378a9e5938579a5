package httplimit

import (
	"cmp"
	"encoding/json"
	"net/http"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/httpfields"
)

// busyDetail explains a denial of client.FromBusy.
const busyDetail = "The limit of this request could not be checked in time. Try again in a second."

// Denial describes a request that is not served.
type Denial struct {
	// Status is 429 for a request over a limit. It is 503 if weir is busy or could not decide, and
	// Options.FallbackStatus if weir is not reached.
	Status   int
	Route    string // Route.Name
	Limit    string // the limit that denied: Route.Name, or the name of a policy in Route.Also
	Detail   string // a sentence for people
	Decision client.Decision
}

// Problem customizes the problem documents of denials (RFC 9457). The default document is
//
//	{"type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
//	 "title": "Request cannot be satisfied as assigned quota has been exceeded",
//	 "status": 429, "detail": "Rate limit exceeded. Try again in 3 seconds.",
//	 "retryAfter": 3, "violated-policies": ["login"]}
type Problem struct {
	// Type and Title replace the type and title of a 429.
	Type, Title string
	// ContentType is the content type of the document. The default is application/problem+json.
	ContentType string
	// Members adds members or replaces existing ones. A nil value removes a member.
	Members func(*http.Request, Denial) map[string]any
}

func (l *limiter) deny(w http.ResponseWriter, r *http.Request, route *Route, d client.Decision, q *httpfields.Quota) {
	denial := Denial{Status: http.StatusTooManyRequests, Route: route.Name, Limit: q.Name,
		Detail: q.Detail(), Decision: d}
	switch d.Source {
	case client.FromFallback:
		denial.Status = l.o.FallbackStatus
	case client.FromBusy:
		denial.Status, denial.Detail = http.StatusServiceUnavailable, busyDetail
	}
	l.answer(w, r, denial)
}

func (l *limiter) answer(w http.ResponseWriter, r *http.Request, d Denial) {
	w.Header().Set("Cache-Control", "no-store") // the next request may be served
	if l.o.Denied != nil {
		l.o.Denied(w, r, d)
		return
	}
	body, err := json.Marshal(l.o.Problem.document(r, d))
	if err != nil { // caused by a member that Members added
		http.Error(w, d.Detail, d.Status)
		return
	}
	w.Header().Set("Content-Type", cmp.Or(l.o.Problem.ContentType, httpfields.ProblemContentType))
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(d.Status)
	_, _ = w.Write(append(body, '\n'))
}

func (p *Problem) document(r *http.Request, d Denial) map[string]any {
	doc := httpfields.Quota{Name: d.Limit, RetryAfter: d.Decision.RetryAfter}.Problem(d.Status)
	doc["detail"] = d.Detail
	if p.Type != "" {
		doc["type"] = p.Type
	}
	if p.Title != "" {
		doc["title"] = p.Title
	}
	if d.Status != http.StatusTooManyRequests {
		doc["type"], doc["title"] = httpfields.ReducedCapacity, httpfields.ReducedCapacityTitle
		delete(doc, httpfields.ViolatedPolicies)
	}
	if p.Members == nil {
		return doc
	}
	for name, value := range p.Members(r, d) {
		if doc[name] = value; value == nil {
			delete(doc, name)
		}
	}
	return doc
}
