package info

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/service"
)

func writeServer(s *Server, w *writer) {
	uptime := int64(time.Since(s.Started).Seconds())
	w.field("redis_version", RedisVersion)
	w.field("weir_version", s.Version)
	w.field("redis_mode", Mode(s.Service))
	w.field("os", runtime.GOOS+" "+runtime.GOARCH)
	w.field("arch_bits", 64)
	w.field("go_version", runtime.Version())
	w.field("process_id", os.Getpid())
	w.field("run_id", s.RunID)
	w.field("tcp_port", s.Port)
	w.field("server_time_usec", time.Now().UnixMicro())
	w.field("uptime_in_seconds", uptime)
	w.field("uptime_in_days", uptime/86400)
	w.field("config_file", "")
}

func writeClients(s *Server, w *writer) {
	w.field("connected_clients", s.Clients.Load())
	w.field("cluster_connections", 0)
	w.field("maxclients", s.MaxClients)
	w.field("blocked_clients", s.Waits.Count.Load()+s.EventWaits.Count.Load())
	w.field("tracking_clients", 0)
	w.field("pubsub_clients", s.Subscribed())
}

func writeMemory(s *Server, w *writer) {
	used, resident := service.ProcessMemory()
	stats := s.Limiter.Stats()
	w.field("used_memory", used)
	w.field("used_memory_human", humanBytes(used))
	w.field("used_memory_rss", resident)
	w.field("used_memory_rss_human", humanBytes(resident))
	w.field("used_memory_dataset", stats.MemoryBytes)
	w.field("maxmemory", stats.MaxMemoryBytes)
	w.field("maxmemory_human", humanBytes(uint64(stats.MaxMemoryBytes)))
	w.field("mem_fragmentation_ratio", fmt.Sprintf("%.2f", float64(resident)/float64(max(used, 1))))
	w.field("mem_allocator", "go")
}

func humanBytes(n uint64) string {
	for i, unit := range []string{"G", "M", "K"} {
		if size := uint64(1) << (30 - 10*i); n >= size {
			return fmt.Sprintf("%.2f%s", float64(n)/float64(size), unit)
		}
	}
	return fmt.Sprintf("%dB", n)
}

func writePersistence(s *Server, w *writer) {
	status := "ok"
	if s.SaveFailed {
		status = "err"
	}
	w.field("loading", 0)
	w.flag("rdb_bgsave_in_progress", s.Saving)
	w.field("rdb_last_save_time", s.LastSave)
	w.field("rdb_last_bgsave_status", status)
	w.field("aof_enabled", 0)
}

func writeStats(s *Server, w *writer) {
	stats := s.Limiter.Stats()
	_, errorReplies := s.Stats.ErrorCounts()
	w.field("total_connections_received", s.Wire.Accepted.Load())
	w.field("total_commands_processed", s.Stats.Processed())
	w.field("total_net_input_bytes", s.Wire.InputBytes.Load())
	w.field("total_net_output_bytes", s.Wire.OutputBytes.Load())
	w.field("rejected_connections", s.Wire.Rejected.Load()+s.Wire.Denied.Load())
	w.field("evicted_clients", s.Wire.EvictedClients.Load()+s.Wire.EvictedHandshakes.Load())
	w.field("expired_keys", stats.Expired)
	w.field("evicted_keys", stats.Evicted)
	w.field("keyspace_hits", 0)
	w.field("keyspace_misses", 0)
	w.field("pubsub_channels", len(s.Events.Subscribers(false)))
	w.field("pubsub_patterns", len(s.Events.Subscribers(true)))
	w.field("total_error_replies", errorReplies)
	w.field("acl_access_denied_auth", s.Stats.AuthFailures.Load())
	w.field("acl_access_denied_cmd", s.Stats.NoPermission.Load())
	w.field("client_output_buffer_limit_disconnections", s.Wire.SlowReaders.Load()+s.Wire.PushOverflows.Load())
}

func writeCommandstats(s *Server, w *writer) {
	s.Stats.EachUsed(func(cmd *service.Command, stat *service.CommandStat) {
		calls, us := stat.Calls.Load(), float64(stat.Ns.Load())/1000
		w.field("cmdstat_"+cmd.Full,
			fmt.Sprintf("calls=%d,usec=%d,usec_per_call=%.2f,rejected_calls=%d,failed_calls=%d",
				calls, int64(us), us/float64(max(calls, 1)), stat.Rejected.Load(), stat.Failed.Load()))
	})
}

func writeErrorstats(s *Server, w *writer) {
	counts, _ := s.Stats.ErrorCounts()
	for _, word := range slices.Sorted(maps.Keys(counts)) {
		w.field("errorstat_"+word, fmt.Sprintf("count=%d", counts[word]))
	}
}

func writeKeyspace(s *Server, w *writer) {
	for database, expiring := range s.Expiring {
		n := expiring
		if database == 0 {
			n += int64(s.Lasting)
		}
		if n > 0 {
			w.field(fmt.Sprint("db", database), fmt.Sprintf("keys=%d,expires=%d,avg_ttl=0", n, expiring))
		}
	}
}

func writeWeir(s *Server, w *writer) {
	stats := s.Limiter.Stats()
	var allowed, denied int64
	for a := range stats.Admitted {
		allowed += stats.Admitted[a]
		denied += stats.Denied[a]
	}
	w.field("weir_version", s.Version)
	w.field("decisions_allowed", allowed)
	w.field("decisions_denied", denied)
	for a := engine.TokenBucket; int(a) < len(stats.KeysBy); a++ {
		w.field("keys_"+a.String(), stats.KeysBy[a])
	}
	w.field("table_bytes", stats.MemoryBytes)
	w.field("evicted_forgiven_units", stats.ForgivenUnits)
	w.field("limiter_time_ms", s.Limiter.Now().NowNs/1e6)
	w.field("clock_behind_ms", s.ClockBehind().Milliseconds())
	w.field("protocol_errors", s.Wire.ProtocolErrors.Load())
	w.field("handler_panics", s.Wire.Panics.Load())
	w.field("denial_events_dropped", s.Events.Dropped.Load())
	w.field("events_written", stats.Events)
	w.field("events_dropped", stats.EventsDropped)
	w.field("events_bytes", stats.EventsBytes)
}
