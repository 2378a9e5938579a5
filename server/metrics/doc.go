// Package metrics exports to Prometheus what a server counts. It reads the counters at each
// scrape: nothing is counted twice, and a server that nobody scrapes pays nothing.
//
// docs/metrics.md lists the metrics. The package leaves the HTTP endpoint to package httpapi.
package metrics
