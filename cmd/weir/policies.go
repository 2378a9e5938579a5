package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/policyfile"
)

const (
	// policyRetryEvery is the interval at which a node tries to apply its policy file while the cluster has no leader.
	policyRetryEvery = 500 * time.Millisecond
	// policiesAtOnce bounds the changes in one atomic step. It fits all of an ordinary file, and keeps a log entry
	// short.
	policiesAtOnce = 256
)

// policyLoader applies the policy file to a node, at the start and at each SIGHUP.
type policyLoader struct {
	path string
	file *policyfile.File
	log  *slog.Logger
	told bool // the wait for an upgrade was logged
}

// openPolicies reads the policy file before any slow step, because a server must not start without its configured
// limits. An empty path means no file.
func openPolicies(path string, log *slog.Logger) (*policyLoader, error) {
	if path == "" {
		return nil, nil
	}
	file, err := policyfile.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--policies: %w", err)
	}
	return &policyLoader{path: path, file: file, log: log}, nil
}

// keep applies the file, and again at each SIGHUP, until the returned function is called. A node that runs alone has
// its policies when keep returns. A cluster has them as soon as it has a leader.
func (l *policyLoader) keep(n limiter.Limiter) (stop func()) {
	if l == nil {
		return func() {}
	}
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	done := make(chan struct{})
	_, cluster := n.(limiter.Replica)
	due := cluster || l.apply(n) != nil
	var running sync.WaitGroup
	running.Go(func() { l.run(n, due, hangup, done) })
	return func() {
		signal.Stop(hangup)
		close(done)
		running.Wait()
	}
}

// run applies the file when due is set, and reads it again at each SIGHUP.
func (l *policyLoader) run(n limiter.Limiter, due bool, hangup <-chan os.Signal, done <-chan struct{}) {
	retry := time.NewTicker(policyRetryEvery)
	defer retry.Stop()
	for {
		if due {
			due = l.apply(n) != nil
		}
		select {
		case <-done:
			return
		case <-hangup:
			due = l.reload()
		case <-retry.C:
		}
	}
}

// reload reads the file again, and reports whether it is valid.
func (l *policyLoader) reload() bool {
	file, err := policyfile.Open(l.path)
	if err != nil {
		l.log.Error("the policy file is invalid; no policy was changed", "error", err)
		return false
	}
	l.file = file
	return true
}

// apply applies the changes of the file. After an error the caller may try again. A node that starts has not applied
// its log yet, so it first waits for the policies that its cluster has.
func (l *policyLoader) apply(n limiter.Limiter) error {
	reader := limiter.NewReader(n)
	state, _, err := reader.Read(func(t *limiter.Topology) ([]int, bool) { return []int{t.Base()}, false })
	if err != nil {
		l.waits(err)
		return err
	}
	ops, foreign := l.file.Changes(state.Policies(), n.Now().NowNs)
	refused := 0
	for from := 0; from < len(ops); from += policiesAtOnce {
		some := ops[from:min(from+policiesAtOnce, len(ops))]
		out := make([]engine.Decision, len(some))
		if err := n.DecideAtomic(some, out); err != nil {
			l.waits(err)
			return err
		}
		for i := range out {
			if out[i].Status != engine.OK {
				refused++
			}
		}
	}
	l.told = false
	if refused > 0 {
		l.log.Error("some policies of the file do not fit into the server's memory or bounds", "refused", refused,
			"file", l.path)
	}
	if len(foreign) > 0 {
		l.log.Error("some policies of the file belong to another owner and were not changed: remove them from the "+
			"file, or run 'weir policy apply --take-over'",
			"policies", foreign, "file", l.path)
	}
	l.log.Info("the policies of the file are applied", "file", l.path, "policies", len(l.file.Policies),
		"owner", l.file.Owner,
		"changes", len(ops)-refused)
	return nil
}

// waits logs why the file is not applied yet. If an operator must act, it logs a warning once.
func (l *policyLoader) waits(err error) {
	switch {
	case !errors.Is(err, limiter.ErrOldMember):
		l.log.Debug("the policies of the file are not applied yet: the cluster has no leader", "error", err)
	case !l.told:
		l.told = true
		l.log.Warn("the policies of the file are not applied yet: upgrade all nodes of the cluster first", "error",
			err, "file", l.path)
	}
}
