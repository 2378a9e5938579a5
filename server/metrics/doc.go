// Package metrics exports the counters of a server to Prometheus. It reads them at each scrape, so nothing is counted
// twice, and a server without scrapes has no cost.
//
// docs/metrics.md lists the metrics. Package httpapi provides the HTTP endpoint.
package metrics
