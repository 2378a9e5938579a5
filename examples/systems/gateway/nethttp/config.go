package main

import (
	"fmt"
	"net/http/httputil"
	"net/url"
	"os"
	"time"

	"go.yaml.in/yaml/v3"
)

// config is the content of application.yml, which the gateway in Java reads too.
type config struct {
	Server struct {
		Address string `yaml:"address"`
		Port    int    `yaml:"port"`
	} `yaml:"server"`
	Spring struct {
		Data struct {
			Redis struct {
				Host    string `yaml:"host"`
				Port    int    `yaml:"port"`
				Timeout string `yaml:"timeout"`
			} `yaml:"redis"`
		} `yaml:"data"`
	} `yaml:"spring"`
	Gateway struct {
		RateLimit rateLimitConfig `yaml:"ratelimit"`
		Routes    []*route        `yaml:"routes"`
	} `yaml:"gateway"`
}

// rateLimitConfig is the section gateway.ratelimit.
type rateLimitConfig struct {
	FallbackEnabled      bool     `yaml:"fallback-enabled"`
	FallbackReduction    float64  `yaml:"fallback-reduction"`
	LocalCacheTTLSeconds int      `yaml:"local-cache-ttl-seconds"`
	RedisKeyPrefix       string   `yaml:"redis-key-prefix"`
	TrustedProxies       []string `yaml:"trusted-proxies"` // networks whose X-Forwarded-For counts
}

// route forwards the requests of a path to a server. RateLimit is nil for a route without a limit.
type route struct {
	ID        string `yaml:"id"`
	Path      string `yaml:"path"`
	URI       string `yaml:"uri"`
	RateLimit *struct {
		RequestsPerSecond int64 `yaml:"requests-per-second"`
		BurstSize         int64 `yaml:"burst-size"`
	} `yaml:"rate-limit"`

	proxy *httputil.ReverseProxy
}

// readConfig reads a file. It returns an error if a route is incomplete.
func readConfig(file string) (*config, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	c := new(config)
	if err := yaml.Unmarshal(text, c); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for _, r := range c.Gateway.Routes {
		target, err := url.Parse(r.URI)
		if err != nil || r.ID == "" || r.Path == "" || target.Host == "" {
			return nil, fmt.Errorf("%s: a route needs an id, a path and a uri, like http://127.0.0.1:3000: %+v", file,
				r)
		}
		r.proxy = httputil.NewSingleHostReverseProxy(target)
	}
	return c, nil
}

func (c *config) timeout() (time.Duration, error) {
	return time.ParseDuration(c.Spring.Data.Redis.Timeout)
}
