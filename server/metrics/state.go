package metrics

import (
	"github.com/weir-project/weir/engine"
)

// tableMetrics are the statistics of the table.
func tableMetrics(stats engine.Stats) []metric {
	ms := []metric{
		gauge("memory_bytes", "Memory of limiters and their index.", stats.MemoryBytes),
		gauge("memory_max_bytes", "Bound on weir_memory_bytes, 0: none.", stats.MaxMemoryBytes),
		counter("expired_keys_total", "Idle limiters collected.", stats.Expired),
		counter("evicted_keys_total", "Limiters evicted because memory was full.", stats.Evicted),
		counter("forgiven_units_total", "Units in use that evictions forgot.", stats.ForgivenUnits),
		counter("strikes_total", "Strikes counted, by RL.STRIKE and by policies with STRIKE: failures, and with "+
			"ATTEMPTS all attempts.", stats.Strikes),
		counter("strike_successes_total", "Of the attempts among them, those that succeeded: RL.FORGIVE or RL.RESET "+
			"was sent.", stats.Successes),
		counter("strike_delays_total", "Strikes that were admitted with a delay of their response.", stats.Delays),
		counter("strike_penalties_total", "Penalties that strikes began.", stats.Penalties),
		counter("strike_lockouts_total", "Penalties of a last threshold.", stats.Lockouts),
	}
	const decided = "Decisions this node carried out, by algorithm and result. In a cluster every node carries out " +
		"all that is admitted."
	for a := range stats.KeysBy {
		name := engine.Algorithm(a).String()
		ms = append(ms, gauge("keys", "Limiters that are not idle, by algorithm; none: keys that are only "+
			"blocked.", stats.KeysBy[a]).with("algorithm", name))
		if engine.Algorithm(a) != engine.NoAlgorithm {
			ms = append(ms,
				counter("decisions_total", decided, stats.Admitted[a]).with("algorithm", name, "result", "admitted"),
				counter("decisions_total", decided, stats.Denied[a]).with("algorithm", name, "result", "denied"))
		}
	}
	return ms
}

// timeMetrics relate limiter time and saves to the wall clock.
func (s collector) timeMetrics() []metric {
	saved := 0.0
	if last := s.Limiter.LastSave(); !last.IsZero() {
		saved = float64(last.UnixMilli()) / 1000
	}
	return []metric{
		gauge("last_save_timestamp_seconds", "When the state was last on disk in full, 0: never.", saved),
		gauge("clock_behind_seconds", "How far the windows of clock and calendar are behind the wall clock; made up "+
			"by 0.05 percent of the time that passes, and at once after a downtime.", s.ClockBehind().Seconds()),
	}
}

func (s collector) storageMetrics() (ms []metric) {
	storage, ok := s.Storage()
	if !ok {
		return nil
	}
	if storage.UsedBytes > 0 {
		ms = append(ms, gauge("storage_bytes", "Size of the state on disk.", storage.UsedBytes))
	}
	if storage.SizeBytes > 0 {
		ms = append(ms,
			gauge("storage_free_bytes", "Free space on the file system of the data directory.", storage.FreeBytes),
			gauge("storage_size_bytes", "Size of the file system of the data directory.", storage.SizeBytes))
	}
	return ms
}
