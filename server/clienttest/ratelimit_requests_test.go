package clienttest

import (
	"fmt"
	"slices"
	"strings"

	descriptorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weir-project/weir/internal/rlspb"
)

// Keys, values and units are such that random descriptors often meet each other, in all ways to match.
var (
	randomKeys   = []string{"a", "a", "b", "ab", "a_b", "b*"}
	randomValues = []string{"", "", "x", "xy", "x*", "*", "b", "q.r", "192.0.2.7", "k:v|w"}
	randomFlags  = []string{"shadow_mode", "quota_mode", "detailed_metric", "value_to_metric", "share_threshold"}
	units        = []string{"second", "minute", "hour", "day", "week", "month", "YEAR"}
)

// configuration returns the files of a configuration: two that people could write, and random ones.
func (c *comparison) configuration() map[string]string {
	files := map[string]string{"shop.yaml": shopLimits, "api.yaml": apiLimits}
	for i := range 3 {
		files[fmt.Sprintf("random%d.yaml", i+1)] = fmt.Sprintf("domain: random%d\ndescriptors:\n%s", i+1,
			c.descriptors("  ", 3))
	}
	return files
}

// descriptors returns random descriptors in YAML, at most so many levels of them.
func (c *comparison) descriptors(indent string, levels int) string {
	var b strings.Builder
	taken := map[string]bool{}
	for range 6 {
		key, value := c.pick(randomKeys...), c.pick(randomValues...)
		name := strings.TrimSuffix(key+"_"+value, "_")
		if value == "" {
			name = key
		}
		if taken[name] {
			continue
		}
		taken[name] = true
		fmt.Fprintf(&b, "%s- key: %q\n%s  value: %q\n", indent, key, indent, value)
		for _, flag := range randomFlags {
			if c.rand.IntN(4) == 0 && (flag != "share_threshold" || strings.HasSuffix(name, "*")) {
				fmt.Fprintf(&b, "%s  %s: true\n", indent, flag)
			}
		}
		switch c.rand.IntN(8) {
		case 0:
		case 1:
			fmt.Fprintf(&b, "%s  rate_limit: {unlimited: true}\n", indent)
		default:
			own, other := c.pick("n1", "n2", "n3", ""), c.pick("n4", "n5")
			if c.rand.IntN(2) == 0 {
				own, other = other, c.pick("n1", "n2", "n3")
			}
			replaces := ""
			if c.rand.IntN(3) == 0 {
				replaces = fmt.Sprintf(", replaces: [{name: %s}]", other)
			}
			fmt.Fprintf(&b, "%s  rate_limit: {unit: %s, requests_per_unit: %d, name: %q%s}\n", indent,
				c.pick(units...), c.rand.IntN(12), own, replaces)
		}
		if levels > 1 && c.rand.IntN(2) == 0 {
			fmt.Fprintf(&b, "%s  descriptors:\n%s", indent, c.descriptors(indent+"    ", levels-1))
		}
	}
	return b.String()
}

const shopLimits = `
domain: shop
descriptors:
  - key: user
    rate_limit: {unit: hour, requests_per_unit: 7, name: basic}
    descriptors:
      - {key: path, value: /pay, rate_limit: {unit: minute, requests_per_unit: 3, replaces: [{name: basic}]}}
      - {key: path, value: "/img/*", share_threshold: true, rate_limit: {unit: hour, requests_per_unit: 9}}
      - {key: path, shadow_mode: true, value_to_metric: true, rate_limit: {unit: day, requests_per_unit: 4}}
  - {key: user, value: root, rate_limit: {unlimited: true}}
  - {key: user, value: "bot*", rate_limit: {unit: week, requests_per_unit: 1}}
  - {key: user, value: banned, rate_limit: {unit: month, requests_per_unit: 0}}
  - {key: remote_address, detailed_metric: true, rate_limit: {unit: minute, requests_per_unit: 10}}
  - {key: plan, value: gold, quota_mode: true, rate_limit: {unit: year, requests_per_unit: 20}}
`

const apiLimits = `
domain: api.example.com
descriptors:
  - key: tenant
    value_to_metric: true
    descriptors:
      - {key: route, value: "v1*", rate_limit: {unit: hour, requests_per_unit: 7}}
      - key: route
        value: "v2.*"
        share_threshold: true
        descriptors:
          - {key: method, detailed_metric: true, rate_limit: {unit: minute, requests_per_unit: 6, name: methods}}
  - {key: tenant, value: "t1", rate_limit: {unit: second, requests_per_unit: 2}}
  - key: generic_key
    value: all
    rate_limit: {unit: second, requests_per_unit: 30, replaces: [{name: methods}]}
`

// own adds the entries of a request in a domain that people could write.
func (c *comparison) own(domain string) (all []*descriptorv3.RateLimitDescriptor_Entry) {
	add := func(key string, values ...string) {
		all = append(all, &descriptorv3.RateLimitDescriptor_Entry{Key: key, Value: c.pick(values...)})
	}
	if domain == "shop" {
		switch c.rand.IntN(4) {
		case 0:
			add("remote_address", "192.0.2.1", "192.0.2.2", "198.51.100.77")
		case 1:
			add("plan", "gold", "silver")
		default:
			add("user", "ann", "bob", "root", "bot1", "bot2", "bo", "banned", "eve.x")
			if c.rand.IntN(2) == 0 {
				add("path", "/pay", "/img/1", "/img/2", "/img", "/x.html", "/y:z")
			}
		}
		return all
	}
	if c.rand.IntN(5) == 0 {
		add("generic_key", "all", "none")
		return all
	}
	add("tenant", "t1", "t2", "t3")
	if c.rand.IntN(4) > 0 {
		add("route", "v1", "v1.users", "v2.users", "v2.", "v2", "v3")
		if c.rand.IntN(3) > 0 {
			add("method", "GET", "POST", "")
		}
	}
	return all
}

const (
	// poolSize are the descriptors in random domains between two flushes: few enough to reach limits.
	poolSize = 12
	// poolTries are the tries to find one that has a limit.
	poolTries = 30
)

// fill makes new random descriptors. Most have a limit.
func (c *comparison) fill() {
	for _, domain := range []string{"random1", "random2", "random3"} {
		c.pool[domain] = nil
		for range poolSize {
			var d *descriptorv3.RateLimitDescriptor
			for range 1 + poolTries*min(c.rand.IntN(4), 1) {
				d = &descriptorv3.RateLimitDescriptor{}
				for range 1 + c.rand.IntN(3) {
					d.Entries = append(d.Entries, &descriptorv3.RateLimitDescriptor_Entry{Key: c.pick(randomKeys...),
						Value: c.pick(randomValues...) + c.pick("", "", "x", "1")})
				}
				if m, ok := c.config.Domain([]byte(domain)).Match(entriesOf(d)); ok && !m.Unlimited {
					break
				}
			}
			c.pool[domain] = append(c.pool[domain], d)
		}
	}
}

func entriesOf(d *descriptorv3.RateLimitDescriptor) (all []*rlspb.Entry) {
	for _, e := range d.Entries {
		all = append(all, &rlspb.Entry{Key: []byte(e.Key), Value: []byte(e.Value)})
	}
	return all
}

// request makes a random request.
func (c *comparison) request(oneHit bool) *rlsv3.RateLimitRequest {
	in := &rlsv3.RateLimitRequest{Domain: c.pick("shop", "api.example.com", "random1", "random2", "random3")}
	if !oneHit && c.rand.IntN(4) == 0 {
		in.HitsAddend = c.rand.Uint32N(6)
	}
	for range 1 + c.rand.IntN(2)*c.rand.IntN(4) {
		d := &descriptorv3.RateLimitDescriptor{}
		if strings.HasPrefix(in.Domain, "random") {
			d.Entries = slices.Clone(c.pool[in.Domain][c.rand.IntN(poolSize)].Entries)
		} else {
			d.Entries = c.own(in.Domain)
		}
		if c.rand.IntN(12) == 0 {
			c.override(d, oneHit)
		}
		if !oneHit && c.rand.IntN(4) == 0 {
			d.HitsAddend = wrapperspb.UInt64(c.rand.Uint64N(6))
		}
		in.Descriptors = append(in.Descriptors, d)
	}
	return in
}

// override gives a descriptor a limit of its own. Of requests with one hit it must not meet a limiter of the
// configuration, which has another limit.
func (c *comparison) override(d *descriptorv3.RateLimitDescriptor, oneHit bool) {
	d.Limit = &descriptorv3.RateLimitDescriptor_RateLimitOverride{Unit: typev3.RateLimitUnit(1 + c.rand.IntN(7)),
		RequestsPerUnit: uint32(c.rand.IntN(5))}
	if oneHit {
		d.Limit.Unit, d.Limit.RequestsPerUnit = typev3.RateLimitUnit_DAY, 4
		d.Entries = append(d.Entries, &descriptorv3.RateLimitDescriptor_Entry{Key: "override",
			Value: "of." + c.pick("a", "b")})
	}
}

func (c *comparison) pick(of ...string) string { return of[c.rand.IntN(len(of))] }
