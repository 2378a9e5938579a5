package rules_test

import (
	"bytes"
	"testing"

	"github.com/weir-project/weir/internal/rlspb"
	"github.com/weir-project/weir/server/envoyrls/rules"
)

// FuzzParse checks that no file and no descriptor makes the package panic, and that a limit is found only if the file
// has one.
func FuzzParse(f *testing.F) {
	f.Add([]byte(shop), "tenant=t&op=read&id=1")
	f.Add([]byte("domain: shop\ndescriptors: [{key: 'a*', share_threshold: yes, rate_limit: {unlimited: yes}}]"),
		"a*=")
	f.Fuzz(func(t *testing.T, text []byte, descriptor string) {
		c, err := rules.Parse([]rules.File{{Name: "f", Data: text}}, false)
		if (c == nil) != (err != nil) {
			t.Fatal("a configuration or an error")
		}
		d := (*rules.Domain)(nil)
		if d = c.Domain([]byte("shop")); d == nil {
			return
		}
		var entries []*rlspb.Entry
		for pair := range bytes.SplitSeq([]byte(descriptor), []byte("&")) {
			key, value, _ := bytes.Cut(pair, []byte("="))
			entries = append(entries, &rlspb.Entry{Key: key, Value: value})
		}
		m, ok := d.Match(entries)
		if ok != (m.Rule != nil) || ok && (len(c.Rules()) == 0 || m.Path == "") {
			t.Fatalf("%+v", m)
		}
	})
}
