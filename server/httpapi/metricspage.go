package httpapi

import (
	"net/http"
	"strings"
	"sync"
	"time"
)

// metricsPage answers scrapes. A scrape needs no password, and its page takes milliseconds with a thousand policies. So
// making pages has a budget of time: a client that asks more often gets the page that was made last. There are two
// forms only, so that no client can have weir keep others. Each has a budget of its own, so that a flood of scrapes of
// one form makes no page of the other form old.
type metricsPage struct {
	make  http.Handler
	forms [2]metricsForm // as text, and compressed by gzip
}

type metricsForm struct {
	mu   sync.Mutex // one page at a time
	left time.Duration
	at   time.Time // when left was brought up to date
	last *madePage
}

const (
	// pageShare is the part of the time that making pages of one form may take: one in pageShare. pageBurst is how much
	// it may take at once after a pause. A page that took longer, on a machine that has much more to do than it can,
	// still leaves no greater debt. So no page is older than pageBurst * pageShare, ten seconds.
	pageShare = 20
	pageBurst = 500 * time.Millisecond
)

// madePage is a page that was made, as text or compressed.
type madePage struct {
	header http.Header
	status int
	body   []byte
}

// ServeHTTP answers one scrape.
func (p *metricsPage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	form, asked := 0, &http.Request{Method: r.Method, URL: r.URL, Header: http.Header{}}
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		form = 1
		asked.Header.Set("Accept-Encoding", "gzip")
	}
	page := p.forms[form].page(p.make, asked.WithContext(r.Context()))
	for name, values := range page.header {
		w.Header()[name] = values
	}
	w.WriteHeader(page.status)
	_, _ = w.Write(page.body)
}

// page returns a new page, or the last one if the budget is used up.
func (f *metricsForm) page(maker http.Handler, r *http.Request) *madePage {
	f.mu.Lock()
	defer f.mu.Unlock()
	begun := time.Now()
	if f.left += begun.Sub(f.at) / pageShare; f.at.IsZero() || f.left > pageBurst {
		f.left = pageBurst
	}
	if f.at = begun; f.left <= 0 {
		return f.last
	}
	page := &madePage{header: http.Header{}, status: http.StatusOK}
	maker.ServeHTTP(page, r)
	f.left = max(f.left-time.Since(begun), -pageBurst)
	f.last = page
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
