package raftstore

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAnOlderImageTakesBackWhatWasApplied: the image of a recovery that overrules this
// node's own is older. The entries between the two are no longer applied.
func TestAnOlderImageTakesBackWhatWasApplied(t *testing.T) {
	m := newTestMachine(t)
	m.passTo(1000)
	require.True(t, m.hasPassed(950))
	m.commit(state{Index: 900}, arrival{})
	m.backTo(900)
	require.False(t, m.hasPassed(950))
	done, forget := m.whenApplied(950)
	defer forget()
	select {
	case <-done:
		t.Fatal("entry 950 is not applied")
	default:
	}
	m.commit(state{Index: 950}, arrival{})
	<-done
}

// TestAForgottenWaiterIsGone, and no other one: a read that gave up must not stay for ever.
func TestAForgottenWaiterIsGone(t *testing.T) {
	m := newTestMachine(t)
	_, forgetFirst := m.whenApplied(10)
	second, forgetSecond := m.whenApplied(10)
	_, forgetThird := m.whenApplied(11)
	forgetFirst()
	require.Len(t, m.waiters, 2)
	forgetThird()
	require.Len(t, m.waiters, 1)
	m.passTo(10)
	<-second
	require.Empty(t, m.waiters)
	forgetSecond()
}
