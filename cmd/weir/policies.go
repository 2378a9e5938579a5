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
	"github.com/weir-project/weir/internal/filewatch"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/policyfile"
	"github.com/weir-project/weir/server/service"
)

// policiesAtOnce bounds the changes in one atomic step. It fits all of an ordinary file, and keeps a log entry short.
const policiesAtOnce = 256

// policyLoader applies the policy files to a node: at the start, at each SIGHUP, and when their content changes.
type policyLoader struct {
	path  string
	watch *filewatch.Watcher
	texts []filewatch.File // the last valid content
	files []*policyfile.File
	stats *service.SourceStats
	log   *slog.Logger
	told  bool // the wait for an upgrade was logged
	whole bool // the last valid content was applied in full
}

// openPolicies reads the policy files before any slow step, because a server must not start without its configured
// limits. An empty path means no file.
func openPolicies(path string, log *slog.Logger) (*policyLoader, error) {
	if path == "" {
		return nil, nil
	}
	l := &policyLoader{path: path, watch: filewatch.New(policyfile.MaxBytes, path), stats: new(service.SourceStats),
		log: log}
	texts, err := l.watch.Read()
	if err == nil {
		err = l.read(texts)
	}
	if err != nil {
		return nil, fmt.Errorf("--policies: %w", err)
	}
	return l, nil
}

// read takes over a content if it is valid.
func (l *policyLoader) read(texts []filewatch.File) error {
	files, err := policyfile.ReadTogether(texts)
	if err == nil {
		l.texts, l.files = texts, files
	}
	return err
}

// keep applies the files, and again after each SIGHUP and each change, until the returned function is called. A node
// that runs alone has its policies when keep returns. A cluster has them as soon as it has a leader.
func (l *policyLoader) keep(n limiter.Limiter, stats *service.SourceStats) (stop func()) {
	if l == nil {
		return func() {}
	}
	l.stats = stats
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

// run applies the files when due is set, at each SIGHUP, and when their content changes.
func (l *policyLoader) run(n limiter.Limiter, due bool, hangup <-chan os.Signal, done <-chan struct{}) {
	tick := time.NewTicker(filewatch.PollEvery)
	defer tick.Stop()
	for {
		if due {
			due = l.apply(n) != nil
		}
		select {
		case <-done:
			return
		case <-hangup:
			texts, err := l.watch.Read()
			due = l.reload(texts, err) || due
		case <-tick.C:
			due = l.poll() || due
		}
	}
}

// poll reports whether the files have a new valid content. In a cluster whose nodes have different files for a while, a
// node must not repeat the content that it has applied: it would undo a newer content of another node.
func (l *policyLoader) poll() bool {
	texts, changed, err := l.watch.Poll()
	if !changed {
		return false
	}
	if err == nil && filewatch.Equal(texts, l.texts) {
		l.stats.Bad.Store(!l.whole)
		l.log.Info("the policy file is again as it was; no policy was changed", "file", l.path)
		return false
	}
	return l.reload(texts, err)
}

// reload takes over what was read, and reports whether it is valid. Otherwise the last valid content stays.
func (l *policyLoader) reload(texts []filewatch.File, err error) bool {
	if err == nil {
		err = l.read(texts)
	}
	if err != nil {
		l.stats.Tell(false)
		l.log.Error("the policy file is invalid; no policy was changed", "error", err)
	}
	return err == nil
}

// apply applies the changes of the files. After an error the caller may try again. A node that starts has not applied
// its log yet, so it first waits for the policies that its cluster has.
func (l *policyLoader) apply(n limiter.Limiter) error {
	var set *engine.Policies
	reader := limiter.NewReader(n)
	err := reader.Read(func(t *limiter.Topology) ([]int, bool) { return []int{t.Base()}, false },
		func(v limiter.View, _ time.Duration) { set = v.Policies() })
	if err != nil {
		l.waits(err)
		return err
	}
	var ops []engine.Op
	var foreign []string
	policies, refused := 0, 0
	for _, f := range l.files {
		some, others := f.Changes(set, n.Now().NowNs)
		ops, foreign, policies = append(ops, some...), append(foreign, others...), policies+len(f.Policies)
	}
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
	l.whole = refused+len(foreign) == 0
	l.stats.Tell(l.whole)
	l.report(policies, len(ops), refused, foreign)
	return nil
}

// report logs what became of the policies.
func (l *policyLoader) report(policies, changes, refused int, foreign []string) {
	if refused > 0 {
		l.log.Error("some policies of the file do not fit into the server's memory or bounds", "refused", refused,
			"file", l.path)
	}
	if len(foreign) > 0 {
		l.log.Error("some policies of the file belong to another owner and were not changed: remove them from the "+
			"file, or run 'weir policy apply --take-over'",
			"policies", foreign, "file", l.path)
	}
	l.log.Info("the policies of the file are applied", "file", l.path, "policies", policies,
		"changes", changes-refused)
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
