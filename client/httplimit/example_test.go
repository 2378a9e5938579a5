package httplimit_test

import (
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/client/httplimit"
)

// unreached returns a client that cannot reach weir, so its fallback decides by the rules of the program. The
// examples therefore run without a server.
func unreached() *client.Client {
	rdb := redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs: []string{"127.0.0.1:1"}, ContextTimeoutEnabled: true, DialerRetries: 1,
	})
	redis.SetLogger(client.RedisLogger{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	limits, err := client.New(rdb, client.Options{
		WhenDown: client.Local, LocalFraction: 1, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		log.Fatal(err)
	}
	return limits
}

func ExampleNew() {
	limits := unreached()
	defer limits.Close()
	limit, err := httplimit.New(limits, httplimit.Options{
		Routes: []httplimit.Route{{
			Pattern: "POST /login",
			Rule:    client.FixedFirst(time.Hour, 2),
			Key:     httplimit.ByHeader("X-Tenant"),
		}},
		FallbackStatus: http.StatusTooManyRequests,
	})
	if err != nil {
		log.Fatal(err)
	}
	handler := limit(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	}))
	for range 3 {
		reply := httptest.NewRecorder()
		request := httptest.NewRequest(http.MethodPost, "/login", nil)
		request.Header.Set("X-Tenant", "acme")
		handler.ServeHTTP(reply, request)
		fmt.Println(reply.Code, reply.Header().Get("X-RateLimit-Remaining"))
	}
	// Output:
	// 204 1
	// 204 0
	// 429 0
}

func ExampleTrust() {
	proxies, err := httplimit.Trust("10.0.0.0/8")
	if err != nil {
		log.Fatal(err)
	}
	request := httptest.NewRequest(http.MethodGet, "/", nil)
	request.RemoteAddr = "10.0.0.1:1234"
	request.Header.Set("X-Forwarded-For", "198.51.100.1, 203.0.113.7")
	fmt.Println(proxies.Client(request))
	// Output: 203.0.113.7
}

func ExampleProxies_ByIP() {
	proxies, err := httplimit.Trust()
	if err != nil {
		log.Fatal(err)
	}
	request := httptest.NewRequest(http.MethodGet, "/", nil)
	request.RemoteAddr = "[2001:db8::1]:1234"
	fmt.Println(proxies.ByIP()(request))
	// Output: ip:2001:db8::/64
}

func ExampleFirstOf() {
	proxies, err := httplimit.Trust()
	if err != nil {
		log.Fatal(err)
	}
	key := httplimit.FirstOf(httplimit.ByHeader("X-Tenant"), proxies.ByIP())
	request := httptest.NewRequest(http.MethodGet, "/", nil)
	request.RemoteAddr = "203.0.113.7:1234"
	fmt.Println(key(request))
	request.Header.Set("X-Tenant", "acme")
	fmt.Println(key(request))
	// Output:
	// ip:203.0.113.7
	// header:acme
}
