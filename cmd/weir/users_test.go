package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"
)

func TestUsersFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "users.acl")
	// printf %s secret | sha256sum
	const app = "user app on #2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b ~app:* +@decide " +
		"+@connection\n"
	require.NoError(t, os.WriteFile(file, []byte(app), 0o600))
	p := start(t, "--users-file="+file)
	_, err := p.dial().Do("PING")
	require.ErrorContains(t, err, "NOAUTH")

	conn, err := redis.Dial("tcp", p.addr, redis.DialUsername("app"), redis.DialPassword("secret"))
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Do("RL.FIXED", "app:1", "1m", "5")
	require.NoError(t, err)
	_, err = conn.Do("RL.FIXED", "other", "1m", "5")
	require.ErrorContains(t, err, "NOPERM No permissions to access a key")

	says := func(text string) func() bool { return func() bool { return strings.Contains(p.output(), text) } }
	require.NoError(t, os.WriteFile(file, []byte("user app on #secret"), 0o600))
	p.signal(syscall.SIGHUP)
	require.Eventually(t, says("the users file is invalid; no user was changed"), patience, 10*time.Millisecond)
	_, err = conn.Do("PING")
	require.NoError(t, err)

	require.NoError(t, os.WriteFile(file, []byte("user app on san:app.example\n"), 0o600))
	p.signal(syscall.SIGHUP)
	require.Eventually(t, says("a rule san: needs --tls-auth-clients"), patience, 10*time.Millisecond)

	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(app, "app:*", "*", 1)), 0o600))
	p.signal(syscall.SIGHUP)
	require.Eventually(t, says("the users of the file are applied"), patience, 10*time.Millisecond)
	_, err = conn.Do("PING")
	require.Error(t, err, "a changed user must lose the connection")
	require.NotContains(t, p.output(), "secret")
	p.stop()
}
