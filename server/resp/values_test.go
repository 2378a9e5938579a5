package resp

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestValues(t *testing.T) {
	var v Values
	w := Reply{&v}
	value, err := v.Value()
	assert.Nil(t, value)
	assert.NoError(t, err)

	w.Map(2)
	w.PairInt("n", -7)
	w.Bulk("all")
	w.Array(3)
	w.Null()
	w.Error("ERR no")
	w.Set(0)
	mark := w.Len()
	w.OK()
	w.Strings([]string{"x"})
	w.Truncate(mark)
	value, err = v.Value()
	assert.NoError(t, err)
	assert.Equal(t, []any{"n", int64(-7), "all", []any{nil, Error("ERR no"), []any{}}}, value)
	texts, err := v.Texts()
	assert.NoError(t, err)
	assert.Equal(t, []string{"n", "-7", "all", "", "ERR no"}, texts)
	assert.Equal(t, mark, v.Len())

	w.Truncate(0)
	w.Error("ERR no")
	_, err = v.Value()
	assert.Equal(t, Error("ERR no"), err)
	_, err = v.Texts()
	assert.Equal(t, Error("ERR no"), err)
}
