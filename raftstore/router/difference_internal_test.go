package router

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// TestAFollowerGetsAllTerms checks that a group which follows the first gets every setting of a policy. Overrides
// follow one by one.
func TestAFollowerGetsAllTerms(t *testing.T) {
	p := engine.Policy{}
	v := reflect.ValueOf(&p).Elem()
	fill := func(f reflect.Value) {
		switch f.Kind() {
		case reflect.Bool:
			f.SetBool(true)
		case reflect.String:
			f.SetString("x")
		case reflect.Int64:
			f.SetInt(7)
		case reflect.Uint64:
			f.SetUint(7)
		default:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		}
	}
	for i := range v.NumField() {
		if v.Type().Field(i).IsExported() {
			fill(v.Field(i))
		}
	}
	got := reflect.ValueOf(set(&p, 0).Policy.Terms).Elem()
	for i := range v.NumField() {
		f := v.Type().Field(i)
		switch f.Name {
		case "Name", "Version", "Overrides":
		default:
			if f.IsExported() {
				require.Equal(t, v.Field(i).Interface(), got.Field(i).Interface(), f.Name)
			}
		}
	}
}
