package fsm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore/internal/raftlog"
)

// TestAnOlderImageTakesBackWhatWasApplied checks an older image that overrules the node's own state after a recovery.
// Entries between the image and the old state no longer count as applied.
func TestAnOlderImageTakesBackWhatWasApplied(t *testing.T) {
	m := newTestMachine(t)
	m.MarkApplied(1000)
	require.True(t, m.HasApplied(950))
	m.commit(State{Index: 900}, raftlog.Arrival{})
	m.resetApplied(900)
	require.False(t, m.HasApplied(950))
	done, forget := m.WhenApplied(950)
	defer forget()
	select {
	case <-done:
		t.Fatal("entry 950 must not count as applied")
	default:
	}
	m.commit(State{Index: 950}, raftlog.Arrival{})
	<-done
}

// TestAForgottenWaiterIsGone checks that a waiter which gives up is removed, and that the other waiters stay.
func TestAForgottenWaiterIsGone(t *testing.T) {
	m := newTestMachine(t)
	_, forgetFirst := m.WhenApplied(10)
	second, forgetSecond := m.WhenApplied(10)
	_, forgetThird := m.WhenApplied(11)
	forgetFirst()
	require.Len(t, m.waiters, 2)
	forgetThird()
	require.Len(t, m.waiters, 1)
	m.MarkApplied(10)
	<-second
	require.Empty(t, m.waiters)
	forgetSecond()
}
