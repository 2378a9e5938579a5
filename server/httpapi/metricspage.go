package httpapi

import (
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/weir-project/weir/httpfields"
)

// metricsPage answers scrapes. A scrape needs no password, and its page takes milliseconds with a thousand policies. So
// making pages has a budget of time: a client that asks more often gets the page that was made last.
type metricsPage struct {
	make http.Handler

	mu   sync.Mutex // one page at a time
	left time.Duration
	at   time.Time // when left was brought up to date
	last [2]*madePage
}

const (
	// pageShare is the part of the time that making pages may take: one in pageShare. pageBurst is how much it may take
	// at once after a pause.
	pageShare = 10
	pageBurst = 500 * time.Millisecond
)

// madePage is a page that was made, as text or compressed.
type madePage struct {
	header http.Header
	status int
	body   []byte
}

// ServeHTTP answers one scrape. There are two pages only, text with and without gzip, so that no client can have weir
// keep others.
func (p *metricsPage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	form, asked := 0, &http.Request{Method: r.Method, URL: r.URL, Header: http.Header{}}
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		form = 1
		asked.Header.Set("Accept-Encoding", "gzip")
	}
	page := p.page(form, asked.WithContext(r.Context()))
	if page == nil {
		w.Header().Set(httpfields.RetryAfter, undecidedRetrySeconds)
		writePlain(w, http.StatusServiceUnavailable, "the metrics are asked for too often")
		return
	}
	for name, values := range page.header {
		w.Header()[name] = values
	}
	w.WriteHeader(page.status)
	_, _ = w.Write(page.body)
}

// page returns a new page, or the last one if the budget is used up.
func (p *metricsPage) page(form int, r *http.Request) *madePage {
	p.mu.Lock()
	defer p.mu.Unlock()
	begun := time.Now()
	if p.left += begun.Sub(p.at) / pageShare; p.at.IsZero() || p.left > pageBurst {
		p.left = pageBurst
	}
	if p.at = begun; p.left <= 0 {
		return p.last[form]
	}
	page := &madePage{header: http.Header{}, status: http.StatusOK}
	p.make.ServeHTTP(page, r)
	p.left -= time.Since(begun)
	p.last[form] = page
	return page
}

// Header implements http.ResponseWriter.
func (p *madePage) Header() http.Header { return p.header }

// WriteHeader implements http.ResponseWriter.
func (p *madePage) WriteHeader(status int) { p.status = status }

// Write implements http.ResponseWriter.
func (p *madePage) Write(b []byte) (int, error) {
	p.body = append(p.body, b...)
	return len(b), nil
}
