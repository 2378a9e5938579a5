package persistence

import (
	"encoding/hex"

	"github.com/weir-project/weir/engine"
)

// seedName is the file with the seed of the table's hashes, so that a cursor of Scan stays valid after a restart.
const seedName = "SEED"

// Seed returns the seed for the table of the directory. A directory without a readable seed gets a new one, which Begin
// writes: only the cursors of scans that run depend on it.
func (s *Store) Seed() engine.HashSeed {
	text, err := s.dir.read(seedName)
	line, ok := cutChecksum(text)
	if err == nil && ok && len(line) == hex.EncodedLen(len(s.seed)) {
		_, err = hex.Decode(s.seed[:], []byte(line))
		s.seeded = err == nil
	}
	if !s.seeded {
		s.seed = engine.NewHashSeed()
	}
	return s.seed
}

// keepSeed writes the seed that Seed made.
func (s *Store) keepSeed() error {
	if s.seeded || s.seed == (engine.HashSeed{}) {
		return nil
	}
	s.seeded = true
	return s.dir.write(seedName+".new", seedName, withChecksum(hex.EncodeToString(s.seed[:])))
}
