package metrics

// evictedHelp is the help text of a metric that the inter-node port also exports.
const evictedHelp = "Connections cut to make room on a full port: silent ones of the address that had most of them, " +
	"then idle ones. " +
	"By port; tls: during the handshake with clients, nodes: during the handshake with other nodes."

// wireMetrics count events of connections.
func (s collector) wireMetrics() []metric {
	w := &s.Wire
	return []metric{
		gauge("connected_clients", "Clients connected now.", w.Connected.Load()),
		gauge("max_clients", "Bound on weir_connected_clients.", s.MaxClients),
		counter("connections_total", "Clients served since the start.", w.Accepted.Load()),
		counter("tls_handshake_failures_total", "TLS handshakes with clients that failed.", w.BadHandshakes.Load()),
		counter("connections_rejected_total", "Clients refused because too many are connected, in total or from one "+
			"address.", w.Rejected.Load()),
		counter("connections_evicted_total", evictedHelp, w.EvictedClients.Load()).with("port", "clients"),
		counter("connections_evicted_total", evictedHelp, w.EvictedHandshakes.Load()).with("port", "tls"),
		counter("connections_evicted_total", evictedHelp, w.EvictedHTTP.Load()).with("port", "http"),
		counter("connections_evicted_total", evictedHelp, w.EvictedRLS.Load()).with("port", "rls"),
		counter("connections_denied_total", "Clients refused by protected mode.", w.Denied.Load()),
		counter("accept_errors_total", "Errors of accept.", w.AcceptErrors.Load()),
		counter("protocol_errors_total", "Connections closed over malformed input.", w.ProtocolErrors.Load()),
		counter("auth_timeouts_total", "Clients disconnected because they did not authenticate in "+
			"time.", w.AuthTimeouts.Load()),
		counter("slow_readers_total", "Clients disconnected because they did not read their "+
			"replies.", w.SlowReaders.Load()),
		counter("push_overflows_total", "Clients disconnected because they did not read their "+
			"messages.", w.PushOverflows.Load()),
		counter("handler_panics_total", "Panics in command handlers; each cost one connection.", w.Panics.Load()),
		counter("received_bytes_total", "Bytes read from clients.", w.InputBytes.Load()),
		counter("sent_bytes_total", "Bytes written to clients.", w.OutputBytes.Load()),
	}
}
