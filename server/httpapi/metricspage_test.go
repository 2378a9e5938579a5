package httpapi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestScrapesHaveABudget checks that clients without a password cannot keep weir making pages of metrics: of a flood of
// scrapes most get a page that was made before. A scraper that comes at its interval gets a new page.
func TestScrapesHaveABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cost, made := 20*time.Millisecond, 0
		const flood = 10 * time.Second
		page := &metricsPage{make: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(cost)
			made++
			require.Empty(t, r.Header.Get("Accept"), "no client chooses further forms")
			_, _ = fmt.Fprintf(w, "page %d %s", made, r.Header.Get("Accept-Encoding"))
		})}
		ask := func(headers ...string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
			for i := 0; i < len(headers); i += 2 {
				r.Header.Set(headers[i], headers[i+1])
			}
			w := httptest.NewRecorder()
			page.ServeHTTP(w, r)
			return w
		}
		for begun := time.Now(); time.Since(begun) < flood; time.Sleep(time.Millisecond) {
			require.Contains(t, ask("Accept", "application/x").Body.String(), "page ")
		}
		require.LessOrEqual(t, time.Duration(made)*cost, pageBurst+flood/pageShare+cost)
		require.Greater(t, time.Duration(made)*cost, flood/pageShare)
		require.Equal(t, fmt.Sprintf("page %d gzip", made+1), ask("Accept-Encoding", "gzip, br").Body.String(),
			"a flood of scrapes of one form makes no page of the other form old")
		for range 3 {
			time.Sleep(15 * time.Second)
			before := made
			require.Equal(t, fmt.Sprintf("page %d gzip", before+1), ask("Accept-Encoding", "gzip").Body.String())
		}
		for cost = 3 * time.Second; ; { // a machine without time for weir
			before := made
			if ask(); made > before {
				break
			}
			time.Sleep(time.Second)
		}
		time.Sleep(pageBurst * pageShare)
		before := made
		ask()
		require.Equal(t, before+1, made, "a page is never older than ten seconds")
	})
}
