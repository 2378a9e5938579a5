package pipeline

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// forwards ends the calls to a leader when another node leads. A leader that is paused, cut off or waiting for its
// disk does not answer. Calls to such a leader would fill the in-flight window, and later calls could not go to the
// new leader until the first calls time out.
type forwards struct {
	mu     sync.Mutex
	leader raft.ServerID
	ctx    context.Context // of the calls to leader; nil: no leader was seen yet
	end    context.CancelFunc
}

// to returns the context for a call to a leader: parent if FollowLeader has not recorded this leader yet.
func (f *forwards) to(parent context.Context, leader raft.ServerID) context.Context {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ctx != nil && f.leader == leader {
		return f.ctx
	}
	return parent
}

// leads records a new leader. After grace it cancels the calls to the previous leader.
func (f *forwards) leads(parent context.Context, leader raft.ServerID, grace time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if leader == "" || leader == f.leader {
		return
	}
	if f.end != nil {
		time.AfterFunc(grace, f.end)
	}
	f.leader = leader
	f.ctx, f.end = context.WithCancel(parent)
}
