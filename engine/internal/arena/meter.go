package arena

import "sync/atomic"

// Meter counts the bytes of one shard, and adds them to a sum over all shards.
type Meter struct {
	own atomic.Int64
	all *atomic.Int64
}

// NewMeter returns a meter with a sum of its own.
func NewMeter() *Meter { return &Meter{all: new(atomic.Int64)} }

// Add adds n bytes; n may be negative.
func (m *Meter) Add(n int64) {
	m.own.Add(n)
	m.all.Add(n)
}

// CountIn sets the sum to which the meter adds its bytes.
func (m *Meter) CountIn(all *atomic.Int64) { m.all = all }

// Bytes returns the bytes counted by this meter.
func (m *Meter) Bytes() int64 { return m.own.Load() }
