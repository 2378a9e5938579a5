package service

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestALongCommandIsShownInPart(t *testing.T) {
	assert.Len(t, shortArgs(make([]string, 100)), shownSlowArgs)
}
