package certs_test

import (
	"crypto/tls"
	"log/slog"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/certs"
	"github.com/weir-project/weir/certs/certtest"
)

const patience = 20 * time.Second

// shown returns the common name of the certificate that a server with this configuration presents now.
func shown(t *testing.T, config *tls.Config) string {
	t.Helper()
	here, there := net.Pipe()
	go func() {
		server := tls.Server(there, config)
		_ = server.Handshake()
		_ = there.Close()
	}()
	defer here.Close()
	client := tls.Client(here, &tls.Config{InsecureSkipVerify: true})
	require.NoError(t, client.Handshake())
	return client.ConnectionState().PeerCertificates[0].Subject.CommonName
}

func TestARenewedCertificateIsShown(t *testing.T) {
	ca := certtest.NewCA(t, "ca")
	files := ca.Issue("old", nil)
	store, err := certs.Open(files, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	config := store.Server(tls.NoClientCert)
	require.Equal(t, "old", shown(t, config))

	ca.IssueTo(files, "new", nil)
	require.Eventually(t, func() bool { return shown(t, config) == "new" }, patience, 10*time.Millisecond)

	ca.IssueTo(files, "newer", nil)
	require.NoError(t, store.Reload())
	require.Equal(t, "newer", shown(t, config), "at once")
}

func TestFilesThatCannotBeUsedChangeNothing(t *testing.T) {
	files := certtest.NewCA(t, "ca").Issue("good", nil)
	store, err := certs.Open(files, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	key, err := os.ReadFile(files.Key)
	require.NoError(t, err)
	for name, damage := range map[string]string{
		"no PEM": "rubbish", "another key": string(pemOf(t, certtest.NewCA(t, "b").Issue("b", nil).Key)),
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(files.Key, []byte(damage), 0o600))
			require.ErrorContains(t, store.Reload(), files.Key)
			require.Equal(t, "good", shown(t, store.Server(tls.NoClientCert)))
		})
	}
	require.NoError(t, os.WriteFile(files.Key, key, 0o600))
	require.NoError(t, store.Reload())
	require.NoError(t, os.WriteFile(files.CA, []byte("rubbish"), 0o600))
	require.ErrorIs(t, store.Reload(), certs.ErrNoAuthority)
}

func pemOf(t *testing.T, path string) []byte {
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return b
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	good := certtest.NewCA(t, "ca").Issue("a", nil)
	for name, files := range map[string]certs.Files{
		"no certificate": {Cert: "/nowhere", Key: good.Key}, "no key": {Cert: good.Cert, Key: "/nowhere"},
		"no CA": {Cert: good.Cert, Key: good.Key, CA: "/nowhere"},
	} {
		_, err := certs.Open(files, slog.New(slog.DiscardHandler))
		require.ErrorContains(t, err, "/nowhere", name)
	}
}
