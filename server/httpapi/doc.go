// Package httpapi answers HTTP beside a server: probes (/livez, /readyz), Prometheus
// (/metrics), proxies that ask whether to let a request through (/check), and people (the
// page and what it shows). See docs/http.md.
//
// It promises that
//
//   - connections are bounded, and nobody keeps others out with silent ones;
//   - a request that is not understood is never an admission;
//   - a page of another site cannot have a browser decide or change anything;
//   - after Close no check and no command reaches the limiter any more.
//
// Commands that people send from the page are carried out by a Hand, which is the server
// for Redis clients. Listeners and certificates are left to the program.
package httpapi
