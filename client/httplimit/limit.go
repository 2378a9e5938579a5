package httplimit

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/client/internal/quota"
	"github.com/weir-project/weir/httpfields"
)

// limiter is the middleware.
type limiter struct {
	client *client.Client
	teller quota.Teller
	o      Options
	router *router

	loggedAt atomic.Int64 // Unix seconds
}

// New returns middleware that limits requests through c.
func New(c *client.Client, o Options) (func(http.Handler) http.Handler, error) {
	o.Routes = append([]Route(nil), o.Routes...)
	if err := o.complete(); err != nil {
		return nil, err
	}
	l := &limiter{client: c, teller: quota.Teller{Client: c}, o: o}
	var err error
	if l.router, err = newRouter(&l.o); err != nil {
		return nil, err
	}
	if err = l.checkQueue(); err != nil {
		return nil, err
	}
	l.standIn()
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch route := l.routeOf(r); {
			case route == nil:
				next.ServeHTTP(w, r)
			case l.admit(w, r, route):
				next.ServeHTTP(w, r)
			}
		})
	}, nil
}

// admit reports whether a request of a route proceeds. If not, admit has answered the request, or its client has
// disconnected. It delays an admitted request by the delay of its decision.
func (l *limiter) admit(w http.ResponseWriter, r *http.Request, route *Route) bool {
	q := route.request(r)
	if l.o.Address != nil {
		q.From = l.o.Address(r)
	}
	d, err := l.decide(r.Context(), route, q)
	if err != nil {
		l.undecided(w, r, route, err)
		return false
	}
	if l.o.Decided != nil {
		l.o.Decided(r, route.Name, q.Key, d)
	}
	name, window := route.binding(&d)
	told := l.teller.Of(r.Context(), name, window, &q, &d)
	told.Set(w.Header(), l.o.Fields, time.Now())
	if !d.Allowed {
		l.logDenial(r, route, q.Key, d)
		l.deny(w, r, route, d, &told)
		return false
	}
	return held(r.Context(), d.RetryAfter)
}

func (l *limiter) routeOf(r *http.Request) *Route {
	if l.o.Enabled != nil && !l.o.Enabled() || !l.o.LimitPreflight && isPreflight(r) {
		return nil
	}
	return l.router.route(r).of(r)
}

// isPreflight reports whether a browser asks for the permission to send a request of another site (CORS). Any other
// OPTIONS request may carry work.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.ContentLength == 0 && r.Header.Get("Origin") != "" &&
		r.Header.Get("Access-Control-Request-Method") != ""
}

// held waits for d, the delay of an admitted request. It returns false if ctx ends first.
func held(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// undecidedRetrySeconds is the Retry-After of an answer without a decision.
const undecidedRetrySeconds = "1"

// undecided answers a request for which weir refuses a decision. The reason is a mistake in the configuration,
// or missing memory at weir. The request never passes, because a mistake must not switch the limits off.
func (l *limiter) undecided(w http.ResponseWriter, r *http.Request, route *Route, err error) {
	if r.Context().Err() == nil {
		if now := time.Now().Unix(); l.loggedAt.Swap(now) != now {
			l.o.Logger.Error("a request could not be limited", "route", route.Name, "error", err)
		}
	}
	detail := "The limit of this request could not be checked."
	if errors.Is(err, client.ErrFull) {
		detail = "There is no room to count this request."
	}
	w.Header().Set(httpfields.RetryAfter, undecidedRetrySeconds)
	l.answer(w, r, Denial{
		Status: http.StatusServiceUnavailable, Route: route.Name, Limit: route.Name, Detail: detail,
		Decision: client.Decision{RetryAfter: client.Never},
	})
}
