package service

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestEventsAreBoundedInRate(t *testing.T) {
	hub := newEvents(new(atomic.Int32))
	for range maxEventsPerSecond {
		assert.True(t, hub.spend(1))
	}
	assert.False(t, hub.spend(1))
	assert.Equal(t, int64(1), hub.Dropped.Load())
	assert.True(t, hub.spend(2), "another second, another budget")
}
