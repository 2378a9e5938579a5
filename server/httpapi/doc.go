// Package httpapi answers HTTP requests: probes (/livez, /readyz), Prometheus (/metrics), proxies that ask whether to
// admit a request (/check), commands in the REST form of Upstash, and the status page. See docs/http.md.
//
// It promises that
//
//   - connections are bounded, and idle connections do not block other clients;
//   - a malformed request is never admitted;
//   - a page of another site cannot make a browser decide or change anything;
//   - after Close no check and no command reaches the limiter.
//
// A Hand, the server for Redis clients, executes the commands of the page and of the REST form. The program
// provides listeners and certificates.
package httpapi
