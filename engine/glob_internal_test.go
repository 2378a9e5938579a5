package engine

import "testing"

// FuzzGlob compares MatchGlob with the simplest possible matcher.
func FuzzGlob(f *testing.F) {
	f.Add([]byte("a*b?[c-e]"), []byte("axxbyd"))
	f.Fuzz(func(t *testing.T, pattern, name []byte) {
		if len(pattern) > 12 || len(name) > 12 {
			return
		}
		if got, want := MatchGlob(pattern, name), plainGlob(pattern, name); got != want {
			t.Fatalf("%q %q: %v", pattern, name, got)
		}
	})
}

func plainGlob(pattern, name []byte) bool {
	if len(pattern) == 0 {
		return len(name) == 0
	}
	if pattern[0] == '*' {
		return plainGlob(pattern[1:], name) || len(name) > 0 && plainGlob(pattern, name[1:])
	}
	if len(name) == 0 {
		return false
	}
	ok, length := matchOne(pattern, name[0])
	return ok && plainGlob(pattern[length:], name[1:])
}
