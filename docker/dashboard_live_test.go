package docker_test

import (
	"net/url"
	"strings"
)

// asGrafana replaces variables as Grafana does: all jobs, all nodes, and an interval that contains scrapes.
var asGrafana = strings.NewReplacer("$job", ".+", "$instance", ".+", "$__rate_interval", "4s")

// awaitPanels waits until each expression of the dashboard returns data. It replaces Grafana, which Debian does not
// package.
func (w *watched) awaitPanels() {
	w.t.Helper()
	for _, panel := range readDashboard(w.t).Panels {
		for _, target := range panel.Targets {
			query := url.Values{"query": {asGrafana.Replace(target.Expr)}}.Encode()
			w.await(panel.Title+": "+target.Expr, func() bool {
				var reply struct {
					Status string
					Data   struct{ Result []any }
				}
				w.ask("query?"+query, &reply)
				return reply.Status == "success" && len(reply.Data.Result) > 0
			})
		}
	}
}
