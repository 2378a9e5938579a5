// nethttp is a web server in Go with weir's middleware in front of it.
package main

import (
	"cmp"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/client/httplimit"
)

func main() {
	rdb := redis.NewClient(&redis.Options{
		Addr:                  cmp.Or(os.Getenv("WEIR"), "127.0.0.1:6380"),
		ContextTimeoutEnabled: true,
		DialerRetries:         1,
	})
	timeoutMs, err := strconv.Atoi(cmp.Or(os.Getenv("TIMEOUT_MS"), "100"))
	if err != nil {
		log.Fatal(err)
	}
	// Closed denies every request while weir is not reached. client.Local would apply half of the policy's limits in
	// this process instead.
	limits, err := client.New(
		rdb, client.Options{WhenDown: client.Closed, Timeout: time.Duration(timeoutMs) * time.Millisecond})
	if err != nil {
		log.Fatal(err)
	}
	nobody, err := httplimit.Trust() // trusts no proxy: the client is the TCP peer
	if err != nil {
		log.Fatal(err)
	}
	limit, err := httplimit.New(limits, httplimit.Options{
		Routes: []httplimit.Route{{Pattern: "/", Rule: client.Policy("api"), Key: nobody.ByIP()}},
	})
	if err != nil {
		log.Fatal(err)
	}
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello\n")) })
	ln, err := net.Listen("tcp", cmp.Or(os.Getenv("LISTEN"), "127.0.0.1:8080"))
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("listening on http://%s", ln.Addr())
	log.Fatal(http.Serve(ln, limit(hello)))
}
