package metrics

import (
	"github.com/weir-project/weir/engine"
)

// tableMetrics are the statistics of the table.
func tableMetrics(stats engine.Stats) []metric {
	ms := []metric{
		gauge("memory_bytes", "Memory that limiters and their index use.", stats.MemoryBytes),
		gauge("memory_max_bytes", "Upper bound on weir_memory_bytes, 0 for no bound.", stats.MaxMemoryBytes),
		counter("expired_keys_total", "Idle limiters that were removed.", stats.Expired),
		counter("evicted_keys_total", "Limiters evicted because memory was full.", stats.Evicted),
		counter("forgiven_units_total", "Units that evicted limiters had counted.", stats.ForgivenUnits),
		counter("strikes_total", "Strikes that RL.STRIKE and policies with STRIKE counted: failures, or all "+
			"attempts with ATTEMPTS.", stats.Strikes),
		counter("strike_successes_total", "Attempts that succeeded, as RL.FORGIVE or RL.RESET reported. "+
			"weir_strikes_total includes them.", stats.Successes),
		counter("strike_delays_total", "Strikes that were admitted with a delayed response.", stats.Delays),
		counter("strike_penalties_total", "Penalties that strikes started.", stats.Penalties),
		counter("strike_lockouts_total", "Penalties of the last threshold of a limit.", stats.Lockouts),
		counter("events_total", "Events written to the log that RL.EVENTS reads, ever.", stats.Events),
		counter("events_dropped_total", "Events that the log has dropped to stay within "+
			"--events-memory.", stats.EventsDropped),
		gauge("events_bytes", "Memory of the log that RL.EVENTS reads.", stats.EventsBytes),
	}
	const decided = "Decisions that this node applied, by algorithm and result."
	for a := range stats.KeysBy {
		name := engine.Algorithm(a).String()
		ms = append(ms, gauge("keys", "Limiters that are not idle, by algorithm. none: keys that have a "+
			"block and no limiter.", stats.KeysBy[a]).with("algorithm", name))
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
		gauge("last_save_timestamp_seconds", "Unix time of the last complete save to disk, 0 for never.", saved),
		gauge("clock_behind_seconds", "How far the clock of CLOCK and CALENDAR windows is behind the wall clock. It "+
			"catches up by 0.05 percent of the elapsed time, and at once after a downtime.", s.ClockBehind().Seconds()),
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
