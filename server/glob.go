package server

import "github.com/weir-project/weir/engine"

// maxPatternBytes bounds a glob: none needs to be longer than a key, and the
// work of matching grows with its length.
const maxPatternBytes = 512

func matchGlob(pattern, name []byte) bool { return engine.MatchGlob(pattern, name) }
