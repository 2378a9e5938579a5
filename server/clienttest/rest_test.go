package clienttest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// restJudge serves Upstash's REST form for a Redis, as @upstash/redis uses it, and returns the URL. It has no code of
// weir.
func restJudge(t *testing.T, addr string) string {
	rdb := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2})
	run := func(r *http.Request, command []any) map[string]any {
		for i, word := range command {
			if n, is := word.(json.Number); is {
				command[i] = n.String()
			}
		}
		reply, err := rdb.Do(r.Context(), command...).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return map[string]any{"error": err.Error()}
		}
		return map[string]any{"result": inBase64(reply)}
	}
	read := func(w http.ResponseWriter, r *http.Request, into any) bool {
		body := json.NewDecoder(r.Body)
		body.UseNumber()
		err := body.Decode(into)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
		return err == nil
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{$}", func(w http.ResponseWriter, r *http.Request) {
		var command []any
		if read(w, r, &command) {
			answer := run(r, command)
			if answer["error"] != nil {
				w.WriteHeader(http.StatusBadRequest)
			}
			_ = json.NewEncoder(w).Encode(answer)
		}
	})
	mux.HandleFunc("POST /pipeline", func(w http.ResponseWriter, r *http.Request) {
		var commands [][]any
		if read(w, r, &commands) {
			answers := make([]any, len(commands))
			for i, command := range commands {
				answers[i] = run(r, command)
			}
			_ = json.NewEncoder(w).Encode(answers)
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(func() {
		server.Close()
		require.NoError(t, rdb.Close())
	})
	return server.URL
}

func inBase64(reply any) any {
	switch reply := reply.(type) {
	case string:
		return base64.StdEncoding.EncodeToString([]byte(reply))
	case []any:
		for i := range reply {
			reply[i] = inBase64(reply[i])
		}
	}
	return reply
}
