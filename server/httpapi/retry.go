package httpapi

import (
	"net/http"

	"github.com/weir-project/weir/httpfields"
)

// retrySeconds is the Retry-After of an answer 429 or 503 that has no other: clients such as got and undici wait by
// this field alone.
const retrySeconds = "1"

// telling makes every answer 429 and 503 carry Retry-After.
func telling(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(retryWriter{w}, r)
	})
}

type retryWriter struct{ http.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w retryWriter) WriteHeader(status int) {
	again := status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
	if again && w.Header().Get(httpfields.RetryAfter) == "" {
		w.Header().Set(httpfields.RetryAfter, retrySeconds)
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap supports http.ResponseController.
func (w retryWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
