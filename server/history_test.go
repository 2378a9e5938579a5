package server

import (
	"encoding/json"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/server/httpapi"
)

// The history is that of ten minutes, the oldest first, however long the server runs.
func TestHistoryIsARing(t *testing.T) {
	h := httpapi.NewHistory(nil)
	require.Equal(t, []httpapi.Sample{}, h.All())
	for i := range int64(httpapi.HistorySamples + 2) {
		h.Add(httpapi.Sample{NowMs: i})
	}
	all := h.All()
	require.Len(t, all, httpapi.HistorySamples)
	for i, s := range all {
		require.EqualValues(t, i+2, s.NowMs)
	}
}

// Samples are taken while the port serves, and none after Close.
func TestHistoryIsTakenWhileServing(t *testing.T) {
	srv := newTestServer(t, Config{})
	c := srv.client(t)
	synctest.Test(t, func(t *testing.T) {
		h := httpapi.NewHistory(srv.Service)
		h.Start()
		synctest.Wait()
		c.say("RL.FIXED k 1m 1")
		c.say("RL.FIXED k 1m 1")
		time.Sleep(httpapi.HistoryEvery)
		synctest.Wait()
		h.Close()
		h.Start()
		time.Sleep(2 * httpapi.HistoryEvery)
		all := h.All()
		require.Len(t, all, 2)
		require.Equal(t, []int64{0, 0, 1, 1, 1}, []int64{all[0].Allowed, all[0].Limited, all[1].Allowed, all[1].Limited, all[1].Keys})
		require.EqualValues(t, httpapi.HistoryEvery.Milliseconds(), all[1].NowMs-all[0].NowMs)
		require.Greater(t, all[1].Memory, int64(0))
	})
}

// The history is for those who may look at all keys, as the page is.
func TestHistoryIsServed(t *testing.T) {
	h := newHTTP(newTestServer(t, Config{ProtectedMode: true}).Server)
	h.Past.Add(httpapi.Sample{NowMs: 7, Allowed: 3, Limited: 2, Memory: 100, Keys: 1})
	w := visit(h, "/history.json", nil)
	var all []httpapi.Sample
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &all))
	require.Equal(t, []httpapi.Sample{{NowMs: 7, Allowed: 3, Limited: 2, Memory: 100, Keys: 1}}, all)
	require.Equal(t, http.StatusForbidden, visit(h, "/history.json", func(r *http.Request) { r.RemoteAddr = "10.0.0.9:5" }).Code)
}
