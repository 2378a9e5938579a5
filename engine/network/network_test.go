package network_test

import (
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine/network"
	"github.com/weir-project/weir/internal/clientaddr"
)

// TestParseIsNetip checks random texts against the parser of the standard library, and against clientaddr, by which the
// server writes addresses.
func TestParseIsNetip(t *testing.T) {
	r, valid := rand.New(rand.NewPCG(7, 8)), 0
	for range 300_000 {
		text := randomText(r)
		if strings.Contains(text, "%") && strings.Contains(text, "/") {
			continue // netip takes any byte for a part of a zone
		}
		want, ok := byNetip(text)
		got, gotOK := network.Parse([]byte(text))
		require.Equal(t, ok, gotOK, "%q", text)
		if !ok {
			continue
		}
		valid++
		require.Equal(t, want.Addr().Is4(), got.V4, "%q", text)
		require.Equal(t, want.Bits(), got.Bits, "%q", text)
		bits := r.IntN(want.Bits() + 1)
		masked, err := want.Addr().Prefix(bits)
		require.NoError(t, err)
		again, ok := network.Parse([]byte(masked.String()))
		if fits := clientaddr.Plain(masked.Addr()).Is4() == masked.Addr().Is4(); fits { // not the NAT64 of 0.0.0.0
			require.True(t, ok, "%q", masked)
			require.Equal(t, got.Mask(bits), again, "%q to %d bits", text, bits)
		}
	}
	require.Greater(t, valid, 30_000)
}

// TestTheServersTextIsWritten checks IsWritten against the text that the server writes for random addresses and
// networks.
func TestTheServersTextIsWritten(t *testing.T) {
	r, written := rand.New(rand.NewPCG(9, 10)), 0
	for range 100_000 {
		text := randomText(r)
		p, ok := byNetip(text)
		if !ok || strings.Contains(text, "%") {
			require.False(t, network.IsWritten(text), "%q", text)
			continue
		}
		var texts []string
		if w := string(clientaddr.Append(nil, p.Addr())); w != "64:ff9b::/64" { // which also has the NAT64 addresses
			texts = append(texts, w)
		}
		bits := r.IntN(p.Addr().BitLen() + 1)
		if several := p.Addr().Is4() && bits >= 8 && bits < 32 || p.Addr().Is6() && bits >= 16 && bits < 64; several {
			masked, _ := p.Addr().Prefix(bits)
			if clientaddr.Plain(masked.Addr()) == masked.Addr() { // not the NAT64 of 0.0.0.0
				texts = append(texts, masked.String())
			}
		}
		for _, w := range texts {
			written++
			require.True(t, network.IsWritten(w), "%q", w)
			for _, other := range []string{" " + w, w + "/128", "0" + w, strings.ToUpper(w) + "%1"} {
				require.False(t, network.IsWritten(other), "%q", other)
			}
		}
	}
	require.Greater(t, written, 10_000)
}

// byNetip parses a text as network.Parse must.
func byNetip(text string) (p netip.Prefix, ok bool) {
	addr, err := netip.ParseAddr(text)
	bits := addr.BitLen()
	if err != nil {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return p, false
		}
		addr, bits = network.Addr(), network.Bits()
	}
	plain := clientaddr.Plain(addr)
	if plain.Is4() && !addr.Is4() {
		bits = max(bits-96, 0)
	}
	return netip.PrefixFrom(plain, bits), true
}

func randomText(r *rand.Rand) string {
	heads := []string{"", "::ffff:", "64:ff9b::", "64:ff9b::1:", "::", "2001:db8:", "1:2:3:4:5:6:", "1:2:3:4:5:6:7:",
		"fe80::"}
	alphabet := "0123456789abcdefABCDEF:::...//%gx "
	text := heads[r.IntN(len(heads))]
	switch r.IntN(4) {
	case 0:
		text += netip.AddrFrom4([4]byte{byte(r.Uint32()), byte(r.Uint32()), byte(r.IntN(3)), byte(r.Uint32())}).String()
	case 1:
		var b [16]byte
		for i := range b {
			if r.IntN(3) > 0 {
				b[i] = byte(r.Uint32())
			}
		}
		if text = netip.AddrFrom16(b).String(); r.IntN(4) == 0 {
			text = netip.AddrFrom16(b).StringExpanded()
		}
	}
	switch r.IntN(5) {
	case 0:
		lengths := []string{"8", "24", "31", "32", "33", "48", "63", "64", "96", "104", "120", "128", "129", "08", "",
			"-1"}
		text += "/" + lengths[r.IntN(len(lengths))]
	case 1:
		text += "%eth0"
	}
	b := []byte(text)
	for range r.IntN(3) {
		switch at := r.IntN(len(b) + 1); {
		case r.IntN(2) == 0 && at < len(b):
			b = append(b[:at], b[at+1:]...)
		default:
			b = append(b[:at], append([]byte{alphabet[r.IntN(len(alphabet))]}, b[at:]...)...)
		}
	}
	return string(b)
}

func TestNetworksThatABlockMayName(t *testing.T) {
	for text, want := range map[string]bool{
		"10.0.0.0/8": true, "10.0.0.0/7": false, "10.0.0.0/31": true, "10.0.0.0/32": false, "10.0.0.0": false,
		"2001::/16": true, "2000::/15": false, "2001:db8::/63": true, "2001:db8::/64": false, "2001:db8::": false,
		"::ffff:10.0.0.0/104": true, "::ffff:10.0.0.0/64": false, "64:ff9b::10.0.0.0/120": true,
	} {
		n, ok := network.Parse([]byte(text))
		require.True(t, ok, text)
		require.Equal(t, want, n.IsSeveral(), text)
	}
}

func TestParseAllocatesNothing(t *testing.T) {
	for _, text := range []string{"192.0.2.1", "2001:db8:0:7::/64", "user:42", "::ffff:192.0.2.1"} {
		b := []byte(text)
		require.Zero(t, testing.AllocsPerRun(100, func() { network.Parse(b) }), text)
	}
}
