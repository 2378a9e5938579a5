package commands

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/weir-project/weir/internal/rlspb"
	"github.com/weir-project/weir/server/scripts"
)

// These are the ways of TestWrappedCommandsAskTheSame that use HTTP. They translate the answers to those of a RESP
// client.

func loginAs(user string) func(*http.Request) {
	return func(r *http.Request) {
		if user != "nobody" {
			r.SetBasicAuth(user, "x")
		}
	}
}

func askHTTPCheck(_ *testing.T, w *wrappedRows, l *wrappedLine) string {
	answer := visit(w.web, "/check/p?key="+l.key, loginAs(l.user))
	switch answer.Code {
	case http.StatusNoContent:
		return "1"
	case http.StatusUnauthorized:
		return "-NOAUTH"
	}
	return "-" + strings.TrimSpace(answer.Body.String())
}

func askRLS(t *testing.T, w *wrappedRows, l *wrappedLine) string {
	ctx := t.Context()
	if l.user != "nobody" {
		login := base64.StdEncoding.EncodeToString([]byte(l.user + ":x"))
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Basic "+login)
	}
	asked := []*rlspb.Descriptor{{Entries: []*rlspb.Entry{{Key: []byte("user"), Value: []byte(l.key)}}}}
	_, err := w.rls.ShouldRateLimit(ctx, &rlspb.Request{Domain: []byte("p"), Descriptors: asked})
	switch status.Code(err) {
	case codes.OK:
		return "1"
	case codes.Unauthenticated:
		return "-NOAUTH"
	}
	return "-" + status.Convert(err).Message()
}

func askPage(t *testing.T, w *wrappedRows, l *wrappedLine) string {
	answer := order(w.web, loginAs(l.user), l.words...)
	switch answer.Code {
	case http.StatusUnauthorized:
		return "-NOAUTH"
	case http.StatusForbidden:
		return "-NOPERM " + answer.Body.String()
	}
	var said struct {
		Reply any
		Error string
	}
	read := json.NewDecoder(bytes.NewReader(answer.Body.Bytes()))
	read.UseNumber()
	require.NoError(t, read.Decode(&said), "%s", answer.Body)
	if said.Error != "" {
		return "-" + said.Error
	}
	return strings.Trim(fmt.Sprint(said.Reply), "[]")
}

// scriptTaker is a Redis that knows no script, and keeps the text of the script it is sent.
type scriptTaker struct {
	redis.UniversalClient
	text string
}

func (s *scriptTaker) EvalSha(context.Context, string, []string, ...any) *redis.Cmd {
	return redis.NewCmdResult(nil, noScript{errNoScript})
}

// noScript is the error of a server that does not know the script.
type noScript struct{ error }

func (noScript) RedisError() {}

func (s *scriptTaker) Eval(_ context.Context, text string, _ []string, _ ...any) *redis.Cmd {
	s.text = text
	return redis.NewCmdResult(nil, errors.New("taken"))
}

// scriptOfRedisRate returns the text of allowN as its library sends it.
func scriptOfRedisRate(t *testing.T) string {
	taker := new(scriptTaker)
	_, err := redis_rate.NewLimiter(taker).Allow(t.Context(), "k", redis_rate.PerSecond(1))
	require.ErrorContains(t, err, "taken")
	require.NotNil(t, scripts.Known.OfSum([]byte(allowN)))
	return taker.text
}
