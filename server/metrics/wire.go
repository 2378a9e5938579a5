package metrics

// evictedHelp is the help text of a metric that the inter-node port also exports.
const evictedHelp = "Connections that weir closed on a full port to admit a new one, by port. Silent " +
	"connections of the address with the most of them go first, then idle connections. tls: during a handshake " +
	"with a client. nodes: during a handshake with another node."

// wireMetrics count events of connections.
func (s collector) wireMetrics() []metric {
	w := &s.Wire
	return []metric{
		gauge("connected_clients", "Connected clients.", w.Connected.Load()),
		gauge("max_clients", "Upper bound on weir_connected_clients.", s.MaxClients),
		counter("connections_total", "Client connections served since the start.", w.Accepted.Load()),
		counter("tls_handshake_failures_total", "Failed TLS handshakes with clients.", w.BadHandshakes.Load()),
		counter("connections_rejected_total", "Clients rejected because too many were connected, in total or from one "+
			"address.", w.Rejected.Load()),
		counter("connections_evicted_total", evictedHelp, w.EvictedClients.Load()).with("port", "clients"),
		counter("connections_evicted_total", evictedHelp, w.EvictedHandshakes.Load()).with("port", "tls"),
		counter("connections_evicted_total", evictedHelp, w.EvictedHTTP.Load()).with("port", "http"),
		counter("connections_evicted_total", evictedHelp, w.EvictedRLS.Load()).with("port", "rls"),
		counter("connections_denied_total", "Clients that protected mode rejected.", w.Denied.Load()),
		counter("accept_errors_total", "Failed calls of accept(2).", w.AcceptErrors.Load()),
		counter("protocol_errors_total", "Connections closed because of malformed input.", w.ProtocolErrors.Load()),
		counter("auth_timeouts_total", "Clients disconnected because they did not authenticate in "+
			"time.", w.AuthTimeouts.Load()),
		counter("slow_readers_total", "Clients disconnected because they did not read their "+
			"replies.", w.SlowReaders.Load()),
		counter("push_overflows_total", "Clients disconnected because they did not read their pushed "+
			"messages.", w.PushOverflows.Load()),
		counter("handler_panics_total", "Panics in command handlers. Each closed one connection.", w.Panics.Load()),
		counter("received_bytes_total", "Bytes read from clients.", w.InputBytes.Load()),
		counter("sent_bytes_total", "Bytes written to clients.", w.OutputBytes.Load()),
	}
}
