package clientprom_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/client/clientprom"
)

// unreached returns a client that cannot reach weir, so its fallback decides. The examples therefore run without a
// server.
func unreached() *client.Client {
	rdb := redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs: []string{"127.0.0.1:1"}, ContextTimeoutEnabled: true, DialerRetries: 1,
	})
	redis.SetLogger(client.RedisLogger{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	limits, err := client.New(rdb, client.Options{
		WhenDown: client.Open, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		log.Fatal(err)
	}
	return limits
}

func ExampleNew() {
	limits := unreached()
	defer limits.Close()
	registry := prometheus.NewRegistry()
	registry.MustRegister(clientprom.New(limits, prometheus.Labels{"limiter": "api"}))
	if _, err := limits.Take(context.Background(), client.TokenBucket(client.PerSecond(10), 100),
		"user:42"); err != nil {
		log.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		log.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "weir_client_fallback_decisions_total" {
			fmt.Println(family.GetName(), family.GetMetric()[0].GetCounter().GetValue())
		}
	}
	// Output: weir_client_fallback_decisions_total 1
}

func ExampleNewRateLimit() {
	limits := unreached()
	defer limits.Close()
	collector, err := clientprom.NewRateLimit(limits, clientprom.RateLimitOptions{
		Usage: []client.Pair{{Policy: "api", Key: "all"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector)
	http.NewServeMux().Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
}
