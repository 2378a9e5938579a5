// nethttp is the website's limits in Go: policies of weir, and its middleware for net/http.
package main

import (
	"cmp"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/client/httplimit"
	"github.com/weir-project/weir/httpfields"
)

// patterns are the kinds of requests by path, with the policy of each. The first that matches counts.
var patterns = [][2]string{
	{"**/login**", "login"}, {"**/auth**", "login"}, {"**/signin**", "login"},
	{"**/recovery**", "recovery"}, {"**/reset**", "recovery"}, {"**/forgot**", "recovery"},
	{"**/payments**", "payment"},
	{"/", "default"},
}

var excluded = []string{"/actuator/**", "/health**", "/metrics**", "/static/**", "/css/**", "/js/**", "/images/**"}

func main() {
	rdb := redis.NewClient(&redis.Options{Addr: cmp.Or(os.Getenv("WEIR"), "127.0.0.1:6380"),
		ContextTimeoutEnabled: true, DialerRetries: 1})
	limits, err := client.New(rdb, client.Options{WhenDown: client.Open, Timeout: 2 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	proxies, err := httplimit.Trust(strings.Split(cmp.Or(os.Getenv("TRUSTED_PROXIES"), "127.0.0.0/8"), ",")...)
	if err != nil {
		log.Fatal(err)
	}
	limit, err := httplimit.New(limits, options(proxies, os.Getenv("USER_HEADER"), os.Getenv("ENABLED") != "false"))
	if err != nil {
		log.Fatal(err)
	}
	ln, err := net.Listen("tcp", cmp.Or(os.Getenv("LISTEN"), "127.0.0.1:8100"))
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("listening on http://%s", ln.Addr())
	log.Fatal(http.Serve(ln, limit(http.HandlerFunc(page))))
}

func options(proxies *httplimit.Proxies, userHeader string, enabled bool) httplimit.Options {
	user := func(r *http.Request) string { return r.Header.Get(userHeader) }
	who := httplimit.FirstOf(httplimit.ByUser(user), proxies.In("X-Forwarded-For", "X-Real-IP").ByIP())
	o := httplimit.Options{
		Enabled: func() bool { return enabled }, Exclude: excluded, LogDenials: slog.Default(),
		Problem: httplimit.Problem{Type: "https://aquastream.org/problems/rate-limit-exceeded",
			Title: "Too Many Requests", Members: members},
	}
	for _, p := range patterns {
		o.Routes = append(o.Routes, httplimit.Route{Pattern: p[0], Rule: client.Policy(p[1]), Key: who})
	}
	return o
}

// members returns the members of the problem document, as the website in Java sends them.
func members(_ *http.Request, d httplimit.Denial) map[string]any {
	return map[string]any{
		"detail": fmt.Sprintf("Rate limit exceeded for %s requests. Please retry after %d seconds.",
			d.Route, httpfields.Seconds(d.Decision.RetryAfter)),
		"limitType": d.Route, "timestamp": time.Now().UTC().Format("2006-01-02T15:04:05.000Z"),
		httpfields.ViolatedPolicies: nil,
	}
}

// page answers for all pages of the website. No password is right here.
func page(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path == "/api/auth/login" {
		w.WriteHeader(http.StatusUnauthorized)
	}
	_, _ = w.Write([]byte(`{"data": "..."}` + "\n"))
}
