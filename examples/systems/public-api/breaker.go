package main

import (
	"errors"
	"log"
	"net/http"
	"time"

	"github.com/sony/gobreaker/v2"
)

// guarded answers 503 while a handler fails: after five failures in a row (status 500 and above, panics), until one
// request after two seconds succeeds. Each process has its own breaker.
func guarded(handler http.Handler) http.Handler {
	breaker := gobreaker.NewTwoStepCircuitBreaker[any](gobreaker.Settings{
		Timeout:     2 * time.Second,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= 5 },
		OnStateChange: func(_ string, from, to gobreaker.State) {
			log.Printf("circuit breaker: %s, was %s", to, from)
		},
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		done, err := breaker.Allow()
		if err != nil {
			w.Header().Set("Retry-After", "2")
			http.Error(w, "The service is not available at present.", http.StatusServiceUnavailable)
			return
		}
		answer, failed := &statusWriter{w, http.StatusOK}, errFailed
		defer func() { done(failed) }() // also after a panic
		handler.ServeHTTP(answer, r)
		if answer.status < http.StatusInternalServerError {
			failed = nil
		}
	})
}

var errFailed = errors.New("the handler failed")

// statusWriter remembers the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap supports http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
