package server

import (
	"encoding/json"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// The history is that of ten minutes, the oldest first, however long the server runs.
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

// Samples are taken while the port serves, and none after Close.
func TestHistoryIsTakenWhileServing(t *testing.T) {
	srv := newTestServer(t, Config{})
	c := srv.client(t)
	synctest.Test(t, func(t *testing.T) {
		h := newHistory(srv.service)
		h.start()
		synctest.Wait()
		c.say("RL.FIXED k 1m 1")
		c.say("RL.FIXED k 1m 1")
		time.Sleep(historyEvery)
		synctest.Wait()
		h.close()
		h.start()
		time.Sleep(2 * historyEvery)
		all := h.all()
		require.Len(t, all, 2)
		require.Equal(t, []int64{0, 0, 1, 1, 1}, []int64{all[0].Allowed, all[0].Limited, all[1].Allowed, all[1].Limited, all[1].Keys})
		require.EqualValues(t, historyEvery.Milliseconds(), all[1].NowMs-all[0].NowMs)
		require.Greater(t, all[1].Memory, int64(0))
	})
}

// The history is for those who may look at all keys, as the page is.
func TestHistoryIsServed(t *testing.T) {
	h := NewHTTP(newTestServer(t, Config{ProtectedMode: true}).Server)
	h.past.add(Sample{NowMs: 7, Allowed: 3, Limited: 2, Memory: 100, Keys: 1})
	w := visit(h, "/history.json", nil)
	var all []Sample
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &all))
	require.Equal(t, []Sample{{7, 3, 2, 100, 1}}, all)
	require.Equal(t, http.StatusForbidden, visit(h, "/history.json", func(r *http.Request) { r.RemoteAddr = "10.0.0.9:5" }).Code)
}
