package commands

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

func infoServer(s *Shared, w *infoWriter) {
	_, port := s.hostPort()
	uptime := int64(time.Since(s.Started).Seconds())
	w.field("redis_version", redisVersion)
	w.field("weir_version", s.Version)
	w.field("redis_mode", s.mode())
	w.field("os", runtime.GOOS+" "+runtime.GOARCH)
	w.field("arch_bits", 64)
	w.field("go_version", runtime.Version())
	w.field("process_id", os.Getpid())
	w.field("run_id", s.runID)
	w.field("tcp_port", port)
	w.field("server_time_usec", time.Now().UnixMicro())
	w.field("uptime_in_seconds", uptime)
	w.field("uptime_in_days", uptime/86400)
	w.field("config_file", "")
}

func infoClients(s *Shared, w *infoWriter) {
	w.field("connected_clients", s.clients.len())
	w.field("cluster_connections", 0)
	w.field("maxclients", s.cfg.MaxClients)
	w.field("blocked_clients", s.Waits.Count.Load())
	w.field("tracking_clients", 0)
	w.field("pubsub_clients", s.clients.pubsubCount())
}

func infoMemory(s *Shared, w *infoWriter) {
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

func infoPersistence(s *Shared, w *infoWriter) {
	saving, failed := s.saver.status()
	status := "ok"
	if failed {
		status = "err"
	}
	w.field("loading", 0)
	w.field("rdb_bgsave_in_progress", oneIf(saving))
	w.field("rdb_last_save_time", lastSaveUnix(s.Limiter))
	w.field("rdb_last_bgsave_status", status)
	w.field("aof_enabled", 0)
}

func infoStats(s *Shared, w *infoWriter) {
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

func infoCommandstats(s *Shared, w *infoWriter) {
	s.Stats.EachUsed(func(cmd *service.Command, stat *service.CommandStat) {
		calls, us := stat.Calls.Load(), float64(stat.Ns.Load())/1000
		w.field("cmdstat_"+cmd.Full, fmt.Sprintf("calls=%d,usec=%d,usec_per_call=%.2f,rejected_calls=%d,failed_calls=%d",
			calls, int64(us), us/float64(max(calls, 1)), stat.Rejected.Load(), stat.Failed.Load()))
	})
}

func infoErrorstats(s *Shared, w *infoWriter) {
	counts, _ := s.Stats.ErrorCounts()
	for _, word := range slices.Sorted(maps.Keys(counts)) {
		w.field("errorstat_"+word, fmt.Sprintf("count=%d", counts[word]))
	}
}

func infoKeyspace(s *Shared, w *infoWriter) {
	if n := s.Limiter.Len(); n > 0 {
		w.field("db0", fmt.Sprintf("keys=%d,expires=%d,avg_ttl=0", n, n))
	}
}

func infoWeir(s *Shared, w *infoWriter) {
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
}
