package main

import (
	"crypto/tls"
	"net"
	"sync"
	"time"

	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/server/httpapi"
)

// logLoadEvery is the interval of log lines about a load. Most loads end before the first one.
const logLoadEvery = 5 * time.Second

// whileLoading answers HTTP and logs how far the state is loaded, until the function that it returns is called. The
// other ports accept connections meanwhile and answer nothing.
func (p *ports) whileLoading(progress *persistence.Progress) (end func()) {
	starting := httpapi.NewStarting(progress.String, p.log)
	if p.web != nil {
		starting.Serve(p.web, p.webTLS)
	}
	if p.webSocket != nil {
		starting.Serve(p.webSocket, func(ln net.Listener) net.Listener { return ln })
	}
	loaded := make(chan struct{})
	var logging sync.WaitGroup
	logging.Go(func() {
		tick := time.NewTicker(logLoadEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				p.log.Info(progress.String())
			case <-loaded:
				return
			}
		}
	})
	return func() {
		close(loaded)
		logging.Wait()
		starting.End()
	}
}

// webTLS adds TLS to the listener for HTTP, if the flags ask for it.
func (p *ports) webTLS(ln net.Listener) net.Listener {
	if !p.httpTLS {
		return ln
	}
	return tls.NewListener(ln, p.cert.Server(tls.NoClientCert))
}
