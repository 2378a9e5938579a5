package httpapi

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/acl"
	"github.com/weir-project/weir/server/service"
)

// oneKey is a limiter with one key, which decides nothing.
type oneKey struct{ limiter.Limiter }

func (oneKey) Stats() engine.Stats { return engine.Stats{Keys: 1, MemoryBytes: 100} }

// newTestService returns a service with one command and without a password, so that only clients on this machine are
// admitted.
func newTestService(t *testing.T) (*service.Service, *service.Command) {
	cmd := &service.Command{Full: "rl.fixed"}
	s := service.New(oneKey{}, []*service.Command{cmd}, slog.New(slog.DiscardHandler))
	users, err := acl.WithDefault(nil, "")
	require.NoError(t, err)
	s.Users.Store(users)
	s.ProtectedMode = true
	return s, cmd
}

// TestHistoryIsARing checks that the history has the samples of the last ten minutes, the oldest first.
func TestHistoryIsARing(t *testing.T) {
	h := newHistory(nil)
	require.Equal(t, []Sample{}, h.all())
	for i := range int64(historySamples + 2) {
		h.add(Sample{NowMs: i})
	}
	all := h.all()
	require.Len(t, all, historySamples)
	for i, s := range all {
		require.EqualValues(t, i+2, s.NowMs)
	}
}

// TestHistoryIsTakenWhileServing checks that samples are taken from start to close, and not after close.
func TestHistoryIsTakenWhileServing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cmd := newTestService(t)
		h := newHistory(s)
		h.start()
		synctest.Wait()
		stat := s.Ran(new(service.Client), cmd, 2, time.Now(), time.Second)
		take := engine.Op{Code: engine.OpTake, Cost: 1}
		s.Tell(&stat.Outcomes, []engine.Op{take, take}, []engine.Decision{{Allowed: 1}, {}})
		time.Sleep(historyEvery)
		synctest.Wait()
		h.close()
		h.start()
		time.Sleep(2 * historyEvery)
		all := h.all()
		require.Len(t, all, 2)
		require.Equal(t, []int64{0, 0, 1, 1, 1},
			[]int64{all[0].Allowed, all[0].Limited, all[1].Allowed, all[1].Limited, all[1].Keys})
		require.EqualValues(t, historyEvery.Milliseconds(), all[1].NowMs-all[0].NowMs)
		require.Greater(t, all[1].Memory, int64(0))
	})
}

// TestHistoryIsServed checks that /history.json needs the same permission as the page.
func TestHistoryIsServed(t *testing.T) {
	s, _ := newTestService(t)
	h, err := New(s, nil, CheckOff, false)
	require.NoError(t, err)
	h.past.add(Sample{NowMs: 7, Allowed: 3, Limited: 2, Memory: 100, Keys: 1})
	get := func(remote string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, "/history.json", nil)
		r.Host, r.RemoteAddr = "127.0.0.1:6381", remote
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	var all []Sample
	require.NoError(t, json.Unmarshal(get("127.0.0.1:50000").Body.Bytes(), &all))
	require.Equal(t, []Sample{{7, 3, 2, 100, 1}}, all)
	require.Equal(t, http.StatusForbidden, get("10.0.0.9:5").Code)
}
