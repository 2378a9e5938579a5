package fsm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore/internal/raftlog"
)

// TestAnOlderImageTakesBackWhatWasApplied: the image of a recovery that overrules this
// node's own is older. The entries between the two are no longer applied.
func TestAnOlderImageTakesBackWhatWasApplied(t *testing.T) {
	m := newTestMachine(t)
	m.PassTo(1000)
	require.True(t, m.HasPassed(950))
	m.commit(State{Index: 900}, raftlog.Arrival{})
	m.backTo(900)
	require.False(t, m.HasPassed(950))
	done, forget := m.WhenApplied(950)
	defer forget()
	select {
	case <-done:
		t.Fatal("entry 950 is not applied")
	default:
	}
	m.commit(State{Index: 950}, raftlog.Arrival{})
	<-done
}

// TestAForgottenWaiterIsGone: a read that gave up is removed from the waiters, and no other is.
func TestAForgottenWaiterIsGone(t *testing.T) {
	m := newTestMachine(t)
	_, forgetFirst := m.WhenApplied(10)
	second, forgetSecond := m.WhenApplied(10)
	_, forgetThird := m.WhenApplied(11)
	forgetFirst()
	require.Len(t, m.waiters, 2)
	forgetThird()
	require.Len(t, m.waiters, 1)
	m.PassTo(10)
	<-second
	require.Empty(t, m.waiters)
	forgetSecond()
}
