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
