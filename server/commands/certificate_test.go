package commands

import (
	"crypto/x509"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const certifiedUsers = "user web on san:web.example san:spiffe://prod/Web ~* +@decide +@connection +acl|whoami\n" +
	"user batch on san:batch.example ~* +@all\nuser gone off san:gone.example ~* +@all\n"

// certified connects a client that has shown a certificate with these names.
func (s *testServer) certified(t *testing.T, names []string, uris ...string) *testClient {
	cert := &x509.Certificate{DNSNames: names}
	for _, text := range uris {
		uri, err := url.Parse(text)
		require.NoError(t, err)
		cert.URIs = append(cert.URIs, uri)
	}
	s.last++
	c := &testClient{t: t, fake: &fakeClient{id: s.last, cert: cert}}
	c.sess = NewSession(s.Shared, c.fake, &c.wire)
	return c
}

// TestCertificatesLogIn checks which user a certificate logs in, with and without a user for everybody.
func TestCertificatesLogIn(t *testing.T) {
	const nobody = "-NOAUTH Authentication required."
	for _, c := range []struct {
		names []string
		uris  []string
		user  string
	}{
		{[]string{"web.example"}, nil, "web"},
		{[]string{"other", "WEB.example"}, nil, "web"},
		{nil, []string{"spiffe://prod/Web"}, "web"},
		{[]string{"web.example"}, []string{"spiffe://prod/Web"}, "web"},
		{nil, []string{"spiffe://prod/web"}, nobody},
		{[]string{"a.web.example", "web.example.org", ""}, nil, nobody},
		{[]string{"web.example", "batch.example"}, nil, nobody},
		{[]string{"gone.example"}, nil, nobody},
		{[]string{"spiffe://prod/Web"}, nil, nobody},
		{nil, []string{"web.example"}, nobody},
		{nil, nil, nobody},
	} {
		closed, _ := usersServer(t, "", certifiedUsers)
		open, _ := usersServer(t, "", certifiedUsers+"user default on nopass ~* +@all\n")
		assert.Equal(t, c.user, closed.certified(t, c.names, c.uris...).say("ACL WHOAMI"), "%q %q", c.names, c.uris)
		if c.user == nobody {
			c.user = "default"
		}
		who := open.certified(t, c.names, c.uris...)
		assert.Equal(t, c.user, who.say("ACL WHOAMI"), "%q %q", c.names, c.uris)
		who.say("RESET")
		assert.Equal(t, c.user, who.say("ACL WHOAMI"), "after RESET")
	}
	srv, _ := usersServer(t, "", certifiedUsers)
	assert.Contains(t, srv.certified(t, []string{"web.example"}).say("RL.RESET k"), "-NOPERM ")
	assert.Contains(t, srv.certified(t, []string{"batch.example"}).say("ACL LIST"),
		"user web on sanitize-payload san:web.example san:spiffe://prod/Web ~* +@decide")
	assert.NotContains(t, srv.certified(t, []string{"batch.example"}).say("ACL GETUSER web"), "san:")
}

// TestReloadedCertificates checks that a reload cuts exactly the clients whose certificates have another user now.
func TestReloadedCertificates(t *testing.T) {
	srv, text := usersServer(t, "", certifiedUsers+"user default on nopass ~* +@all\n")
	web, batch, plain := srv.certified(t, []string{"web.example"}), srv.certified(t, []string{"batch.example"}),
		srv.certified(t, []string{"new.example"})
	*text += "user new on san:new.example ~* +@decide\n"
	require.NoError(t, srv.ReloadUsers())
	assert.Equal(t, []bool{false, false, true}, []bool{web.fake.killed, batch.fake.killed, plain.fake.killed},
		"it was default and is new")
	*text = "user web on san:batch.example ~* +@decide +@connection\nuser default on nopass ~* +@all\n"
	require.NoError(t, srv.ReloadUsers())
	assert.True(t, web.fake.killed)
	assert.True(t, batch.fake.killed)
}

func TestRefusedCertificateRules(t *testing.T) {
	for rule, says := range map[string]string{
		"san:": "rule 'san:' must be san: and a DNS name or URI", "san:*.example": "without *",
	} {
		_, err := ParseUsers([]byte("user a on " + rule))
		assert.ErrorContains(t, err, says)
	}
	_, err := ParseUsers([]byte("user a on san:x.example\nuser b on san:X.example\n"))
	assert.ErrorContains(t, err, `line 2: users "a" and "b" have the same rule san:x.example`)
}
