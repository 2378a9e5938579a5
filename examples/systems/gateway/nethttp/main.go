// nethttp is the gateway in Go, with weir's client and middleware. It reads the same application.yml as the gateway in
// Java, and reads it again at SIGHUP.
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/client/httplimit"
)

func main() {
	if err := run(cmp.Or(os.Getenv("CONFIG"), "src/main/resources/application.yml")); err != nil {
		log.Fatal(err)
	}
}

func run(file string) error {
	conf, err := readConfig(file)
	if err != nil {
		return err
	}
	timeout, err := conf.timeout()
	if err != nil {
		return err
	}
	redis.SetLogger(client.RedisLogger{Logger: slog.Default()})
	store := net.JoinHostPort(conf.Spring.Data.Redis.Host, strconv.Itoa(conf.Spring.Data.Redis.Port))
	rdb := redis.NewClient(&redis.Options{Addr: store, ContextTimeoutEnabled: true, DialerRetries: 1})
	defer rdb.Close()
	limits, err := client.New(rdb, options(&conf.Gateway.RateLimit, timeout))
	if err != nil {
		return err
	}
	defer limits.Close()
	gateway := newGateway(limits)
	gateway.use(conf)
	terms, err := gateway.limits(conf.Gateway.RateLimit.TrustedProxies)
	if err != nil {
		return err
	}
	limit, err := httplimit.New(limits, terms)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	if err := gateway.setPolicies(ctx); err != nil {
		slog.Warn("weir has not taken the limits of the routes yet", "error", err)
	}
	go gateway.keepPolicies(ctx)
	go gateway.follow(ctx, file)
	ln, err := net.Listen("tcp", fmt.Sprintf("%s:%d", conf.Server.Address, conf.Server.Port))
	if err != nil {
		return err
	}
	slog.Info("listening on http://" + ln.Addr().String())
	mux := http.NewServeMux()
	mux.Handle("/actuator/prometheus", promhttp.HandlerFor(gateway.registry, promhttp.HandlerOpts{}))
	mux.Handle("/", gateway.count(limit(gateway)))
	return http.Serve(ln, mux)
}

// options returns the client's options for the settings of gateway.ratelimit.
func options(c *rateLimitConfig, timeout time.Duration) client.Options {
	o := client.Options{
		WhenDown: client.Open, FallBackOnErrors: true, LocalFraction: c.FallbackReduction,
		LocalIdle: time.Duration(c.LocalCacheTTLSeconds) * time.Second, Timeout: timeout,
	}
	if c.FallbackEnabled {
		o.WhenDown = client.Local
	}
	return o
}

// follow reads the routes again at each SIGHUP. An invalid file changes nothing.
func (g *gateway) follow(ctx context.Context, file string) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
		}
		conf, err := readConfig(file)
		if err != nil {
			slog.Error("the routes stay as they are", "error", err)
			continue
		}
		g.use(conf)
		slog.Info("new routes", "file", file, "routes", len(conf.Gateway.Routes))
	}
}
