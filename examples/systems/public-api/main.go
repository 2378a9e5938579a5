// public-api is a public HTTP API with limits by address, by API key, by endpoint and for the service as
// a whole, settings from the environment, a circuit breaker and metrics.
package main

import (
	"cmp"
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/client/clientprom"
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	settings, err := settingsOf(os.Getenv)
	if err != nil {
		return err
	}
	limits, err := connect()
	if err != nil {
		return err
	}
	handler, err := routes(limits)
	if err != nil {
		return err
	}
	if settings.enabled {
		if handler, err = limited(limits, &settings, handler); err != nil {
			return err
		}
		go install(limits, &settings)
	}
	ln, err := net.Listen("tcp", cmp.Or(os.Getenv("LISTEN"), "127.0.0.1:8080"))
	if err != nil {
		return err
	}
	log.Printf("listening on http://%s", ln.Addr())
	return (&http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}).Serve(ln)
}

// connect makes a client of one node, or of a cluster whose nodes WEIR lists with commas.
func connect() (*client.Client, error) {
	timeoutMs, err := strconv.Atoi(cmp.Or(os.Getenv("TIMEOUT_MS"), "100"))
	if err != nil {
		return nil, err
	}
	rdb := redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs:                 strings.Split(cmp.Or(os.Getenv("WEIR"), "127.0.0.1:6380"), ","),
		ContextTimeoutEnabled: true,
		DialerRetries:         1,
	})
	// IDs: a request that the client repeats after the loss of a leader counts once. Closed: without weir no request
	// passes.
	return client.New(rdb,
		client.Options{WhenDown: client.Closed, IDs: true, Timeout: time.Duration(timeoutMs) * time.Millisecond})
}

// install stores the limits of the environment at weir, as soon as it is reached.
func install(limits *client.Client, settings *settings) {
	for {
		err := settings.setPolicies(context.Background(), limits)
		if err == nil || errors.Is(err, client.ErrRefused) {
			log.Printf("limits of the environment are in force: %v", err == nil)
			return
		}
		time.Sleep(time.Second)
	}
}

// routes returns the metrics, and the API itself: the server that BACKEND names, or else a list without users.
func routes(limits *client.Client) (http.Handler, error) {
	metrics, err := clientprom.NewRateLimit(limits, clientprom.RateLimitOptions{
		Usage: []client.Pair{{Policy: "service", Key: "all"}},
	})
	if err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics, clientprom.New(limits, nil))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	if os.Getenv("BACKEND") == "" {
		mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte("{\"users\":[]}\n"))
		})
		return mux, nil
	}
	backend, err := url.Parse(os.Getenv("BACKEND"))
	if err != nil {
		return nil, err
	}
	mux.Handle("/", guarded(httputil.NewSingleHostReverseProxy(backend)))
	return mux, nil
}
