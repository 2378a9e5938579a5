package engine

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// TestPageSize: a page is one allocation class of the runtime, so none of it is lost.
func TestPageSize(t *testing.T) {
	require.EqualValues(t, 16<<10, unsafe.Sizeof(page{}))
	require.GreaterOrEqual(t, pageMarks*markWords, pageLen/8)
	require.Less(t, unsafe.Sizeof(segment{}), uintptr(segmentBytes))
}
