package arena

import "sync/atomic"

// Meter counts bytes of one shard, and of all.
type Meter struct {
	own atomic.Int64
	all *atomic.Int64
}

// NewMeter returns a meter that counts by itself.
func NewMeter() *Meter { return &Meter{all: new(atomic.Int64)} }

// Add counts n bytes more, or fewer.
func (m *Meter) Add(n int64) {
	m.own.Add(n)
	m.all.Add(n)
}

// CountIn makes the meter count in a sum as well.
func (m *Meter) CountIn(all *atomic.Int64) { m.all = all }

// Bytes is what the meter itself has counted.
func (m *Meter) Bytes() int64 { return m.own.Load() }
