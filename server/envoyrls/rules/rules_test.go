package rules_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/rlspb"
	"github.com/weir-project/weir/server/envoyrls/rules"
)

// parse reads files that have a domain each, or as many as merge allows.
func parse(merge bool, texts ...string) (*rules.Config, error) {
	var files []rules.File
	for i, text := range texts {
		files = append(files, rules.File{Name: fmt.Sprintf("%d.yaml", i+1), Data: []byte(text)})
	}
	return rules.Parse(files, merge)
}

func entries(pairs ...string) (all []*rlspb.Entry) {
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, &rlspb.Entry{Key: []byte(pairs[i]), Value: []byte(pairs[i+1])})
	}
	return all
}

const shop = `
domain: shop
descriptors:
  - key: user
    rate_limit: {unit: minute, requests_per_unit: 10}
    descriptors:
      - {key: path, value: /pay, rate_limit: {unit: HOUR, requests_per_unit: 3}}
  - {key: user, value: bot, rate_limit: {unit: second, requests_per_unit: 0}}
  - {key: user, value: "vip*", rate_limit: {unlimited: true}}
  - {key: user, value: "vip-*", rate_limit: {unit: day, requests_per_unit: 1}}
  - {key: file, value: "img*", share_threshold: true, rate_limit: {unit: week, requests_per_unit: 5}}
  - key: tenant
    value_to_metric: true
    descriptors:
      - {key: op, value: 7, shadow_mode: yes, rate_limit: {unit: month, requests_per_unit: 9}}
      - {key: op, value: "r*", share_threshold: true, descriptors: [
          {key: id, detailed_metric: true, quota_mode: true,
           rate_limit: {unit: year, requests_per_unit: 2, name: ids, replaces: [{name: a}, {name: b}]}}]}
  - {key: plan, detailed_metric: true, rate_limit: {unit: minute, requests_per_unit: 4}}
  - {key: "any*", rate_limit: {unit: minute, requests_per_unit: 6}}
`

func TestMatch(t *testing.T) {
	c, err := parse(false, shop)
	require.NoError(t, err)
	for _, want := range []struct {
		entries string // keys and values
		limit   string // of the rule, "" for none
		path    string
		pattern string
	}{
		{"user anna", "10/MINUTE", "shop.user", ""},
		{"user anna path /pay", "3/HOUR", "shop.user.path_/pay", ""},
		{"user anna path /", "", "", ""},
		{"user anna path /pay more x", "", "", ""},
		{"path /pay", "", "", ""},
		{"user bot", "0/SECOND", "shop.user_bot", ""},
		{"user bot path /pay", "", "", ""},       // the exact value precedes the key alone, and has no descriptors
		{"user vip-1", "", "shop.user_vip*", ""}, // the first wildcard precedes the longer one
		{"file img7", "5/WEEK", "shop.file_img*", "img*"},
		{"file img", "5/WEEK", "shop.file_img*", "img*"},
		{"file im", "", "", ""},
		{"tenant t1 op 7", "9/MONTH", "shop.tenant_t1.op_7", ""},
		{"tenant t1", "", "", ""},
		{"tenant t1 op read id 5", "2/YEAR", "shop.tenant_t1.op_r*.id_5", " r* "},
		{"plan gold", "4/MINUTE", "shop.plan_gold", ""},
		{"anyone at", "6/MINUTE", "shop.anyone_any*", ""},
		{"any* ", "6/MINUTE", "shop.any*_any*", ""},
	} {
		t.Run(want.entries, func(t *testing.T) {
			m, ok := c.Domain([]byte("shop")).Match(entries(strings.Split(want.entries, " ")...))
			require.Equal(t, want.path != "", ok)
			if !ok {
				return
			}
			require.Equal(t, want.path, m.Path)
			require.Equal(t, strings.Fields(want.pattern), strings.Fields(strings.Join(m.Patterns, " ")))
			if want.limit == "" {
				require.True(t, m.Unlimited)
				return
			}
			require.Equal(t, want.limit, fmt.Sprintf("%d/%s", m.RequestsPerUnit, m.Unit))
		})
	}
	require.Nil(t, c.Domain([]byte("other")))
	require.Nil(t, (*rules.Config)(nil).Domain([]byte("shop")))
	_, ok := c.Domain([]byte("shop")).Match(nil)
	require.False(t, ok)
}

func TestFlags(t *testing.T) {
	c, err := parse(false, shop)
	require.NoError(t, err)
	m, _ := c.Domain([]byte("shop")).Match(entries("tenant", "t", "op", "read", "id", "1"))
	require.True(t, m.QuotaMode && m.DetailedMetric && !m.ShadowMode)
	require.Equal(t, "ids", m.Name)
	require.Equal(t, []string{"a", "b"}, m.Replaces)
	m, _ = c.Domain([]byte("shop")).Match(entries("tenant", "t", "op", "7"))
	require.True(t, m.ShadowMode && !m.QuotaMode)
	require.Len(t, c.Rules(), 10)
}

func TestMerge(t *testing.T) {
	one := "domain: d\ndescriptors: [{key: a, value: 'x*', rate_limit: {unit: day, requests_per_unit: 1}}]"
	two := "domain: d\ndescriptors: [{key: a, value: 'xy*', rate_limit: {unit: day, requests_per_unit: 2}}]"
	_, err := parse(false, one, two)
	require.EqualError(t, err, "2.yaml: domain d: another file has this domain too: put its descriptors into one "+
		"file, or allow several files of one domain")
	c, err := parse(true, one, two)
	require.NoError(t, err)
	m, _ := c.Domain([]byte("d")).Match(entries("a", "xyz"))
	require.EqualValues(t, 1, m.RequestsPerUnit)
	require.Equal(t, 1, c.Len())
	_, err = parse(true, one, one)
	require.EqualError(t, err, "2.yaml:2: d.a_x*: the configuration has this descriptor twice")
}

func TestMergeKeys(t *testing.T) {
	c, err := parse(false, `
domain: d
descriptors:
  - {key: a, rate_limit: &limit {unit: day, requests_per_unit: 1}}
  - {key: b, rate_limit: {<<: *limit, requests_per_unit: 2}}
  - {key: c, rate_limit: {requests_per_unit: 3, <<: [*limit]}}
  - {key: d, rate_limit: *limit}
`)
	require.NoError(t, err)
	for i, r := range c.Rules() {
		require.Equal(t, rlspb.Unit_DAY, r.Unit)
		require.EqualValues(t, []int{1, 2, 3, 1}[i], r.RequestsPerUnit)
	}
}

func TestErrors(t *testing.T) {
	in := func(descriptor string) string { return "domain: d\ndescriptors:\n  - " + descriptor }
	limit := func(limit string) string { return in("{key: k, rate_limit: {" + limit + "}}") }
	for text, want := range map[string]string{
		"":                          "1.yaml: the file must have a domain",
		"descriptors: []":           "1.yaml: domain: must not be empty",
		"domain: [1]":               "1.yaml:1: domain: must be text",
		"- 1":                       "1.yaml:1: the file: must have words with values, like key: user",
		"domain: d\n---\ndomain: e": "1.yaml: a file must have one YAML document",
		"domain: d\nlimits: 1":      `1.yaml:2: the file: unknown word "limits" here: it may have domain, descriptors`,
		"domain: d\n1: x":           `1.yaml:2: the file: words must be text, not "1"`,
		"domain: d\ndescriptors: 5": "1.yaml:2: d: descriptors must be a list",
		in("5"):                     "1.yaml:3: d.descriptors[0]: must have words with values, like key: user",
		in("{value: x}"):            "1.yaml:3: d.descriptors[0]: key must not be empty",
		in("{key: k, value: 1.5}"):  "1.yaml:3: d.descriptors[0].value: must be text: write 1.5 in quotes",
		in("{key: k, keys: 1}"):     `unknown word "keys" here (did you mean key?)`,
		in("{key: k, key: l}"):      "1.yaml:3: d.descriptors[0]: key is given twice",
		in("{key: k, unit: day}"):   `1.yaml:3: d.descriptors[0]: unknown word "unit" here: it may have key, value, `,
		in("{key: k}\n  - {key: k, value: v}\n  - {key: k_v}"): "1.yaml:5: d.k_v: the configuration has this " +
			"descriptor twice",
		in("{key: k, shadow_mode: maybe}"): `1.yaml:3: d.k: shadow_mode must be true or false, not "maybe"`,
		in("{key: k, value: v, share_threshold: true}"): "1.yaml:3: d.k_v: share_threshold needs a value that ends " +
			"with *",
		limit(""):                           "1.yaml:3: d.k: unit must be second, ",
		limit("unit: unknown"):              `1.yaml:3: d.k: unit must be second, minute, hour, day, week, month or year, not "unknown"`,
		limit("unit: none"):                 `not "none"`,
		limit("unit: fortnight"):            `not "fortnight"`,
		limit("unlimited: true, unit: day"): "1.yaml:3: d.k: unlimited must have no unit",
		limit("unit: day, requests_per_unit: -1"): "1.yaml:3: d.k: requests_per_unit must be a whole number from " +
			`0 to 4294967295, not "-1"`,
		limit("unit: day, requests_per_unit: 4294967296"):        `not "4294967296"`,
		limit("unit: day, requests_per_unit: 1.5"):               `not "1.5"`,
		limit("unit: day, shadow_mode: true"):                    `1.yaml:3: d.k: rate_limit: unknown word "shadow_mode" here`,
		limit("unit: day, replaces: x"):                          "1.yaml:3: d.k: replaces must be a list",
		limit("unit: day, replaces: [{}]"):                       "1.yaml:3: d.k: replaces must have a name",
		limit("unit: day, name: n, replaces: [{name: n}]"):       `1.yaml:3: d.k: replaces must not name "n", the limit itself`,
		"domain: d\ndescriptors: &a [{key: k, descriptors: *a}]": "descriptors must be at most 32 inside each other",
		"domain: &a {<<: *a}":                                    "1.yaml:1: domain: must be text",
		"domain: d\ndescriptors: [&a {<<: *a}]":                  "too many mappings in a file",
		in("{key: " + strings.Repeat("k", rules.MaxPathBytes) + "}"): "1.yaml:3: d: the keys and values down to a " +
			"descriptor must have at most 1024 bytes",
		"domain: d" + strings.Repeat(" ", rules.MaxFileBytes): "1.yaml: a file must have at most 1048576 bytes, not 1048585",
	} {
		t.Run(text[:min(len(text), 60)], func(t *testing.T) {
			c, err := parse(false, text)
			require.ErrorContains(t, err, want)
			require.Nil(t, c)
		})
	}
}

// TestAllErrors checks that one check names all errors of all files, up to a bound.
func TestAllErrors(t *testing.T) {
	bad := "domain: %s\ndescriptors: [{key: a, rate_limit: {unit: day, unlimited: true}}, {key: b, rate_limit: {}}]"
	_, err := parse(false, fmt.Sprintf(bad, "x"), fmt.Sprintf(bad, "y"))
	require.Len(t, strings.Split(err.Error(), "\n"), 4)
	_, err = parse(false, "domain: 1.5", "{")
	require.Len(t, strings.Split(err.Error(), "\n"), 2)
	_, err = parse(false, "domain: x\ndescriptors: ["+strings.Repeat("{key: ''},", 100)+"]")
	require.Len(t, strings.Split(err.Error(), "\n"), 20)
}

// TestBounds checks configurations that are larger than any that people write.
func TestBounds(t *testing.T) {
	many := make([]rules.Descriptor, rules.MaxDescriptors+1)
	for i := range many {
		many[i].Key = fmt.Sprint(i)
	}
	_, err := rules.Build([]rules.Source{{Name: "s", Domain: "d", Descriptors: many}}, false)
	require.EqualError(t, err, "s: d.100000: a configuration must have at most 100000 descriptors")
	long := []rules.Descriptor{{Key: "k", Value: strings.Repeat("v", rules.MaxPathBytes)}}
	_, err = rules.Build([]rules.Source{{Name: "s", Domain: "d", Descriptors: long}}, false)
	require.EqualError(t, err, "s: d: the keys and values down to a descriptor must have at most 1024 bytes")
	_, err = rules.Build([]rules.Source{{Name: "s", Domain: "d", Descriptors: many[1:]}}, false)
	require.NoError(t, err)
	deep := rules.Descriptor{Key: "k"}
	for range rules.MaxDepth {
		deep = rules.Descriptor{Key: "k", Descriptors: []rules.Descriptor{deep}}
	}
	_, err = rules.Build([]rules.Source{{Name: "s", Domain: "d", Descriptors: []rules.Descriptor{deep}}}, false)
	require.ErrorContains(t, err, "descriptors must be at most 32 inside each other")
}
