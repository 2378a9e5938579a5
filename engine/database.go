package engine

import (
	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/engine/internal/rule"
	"github.com/weir-project/weir/engine/internal/store"
)

// Databases is the number of databases. Limiters, strings, holds and blocks of single keys are of one database.
// Policies and blocks everywhere are common to all.
const Databases = rule.Databases

// MaxDatabaseKeyLen bounds a key of a database other than 0, and MaxDatabaseIDLen the id of a hold, in bytes: their
// stored names have the mark of the database.
const (
	MaxDatabaseKeyLen = MaxKeyLen - rule.DatabaseLen
	MaxDatabaseIDLen  = MaxIDLen - rule.DatabaseLen
)

// AppendStored appends the name under which a database stores a key, the id of a hold, or a policy's limiter.
func AppendStored(to []byte, database int, name []byte) []byte {
	if policy, limit, key, ok := SplitName(name); ok {
		to = rule.AppendName(to, policy, limit, nil)
		name = key
	}
	return append(rule.AppendMark(to, database), name...)
}

// CutDatabase returns the database of a stored name, and the name as clients write it. It allocates for the name of a
// policy's limiter in another database than 0 only.
func CutDatabase(stored []byte) (database int, name []byte) {
	if policy, limit, key, ok := SplitName(stored); ok {
		if database, key = rule.CutDatabase(key); database == 0 {
			return 0, stored
		}
		return database, rule.AppendName(nil, policy, limit, key)
	}
	return rule.CutDatabase(stored)
}

// IsStored reports whether a name is one that a database other than 0 stores. Clients may not send such a name.
func IsStored(name []byte) bool { return rule.DatabaseOf(name) != 0 }

// StoredIn returns the database that an operation belongs to, by its stored names. All names of an operation are of one
// database.
func (op *Op) StoredIn() int {
	if op.Code == OpFlush {
		return int(op.Cost)
	}
	if len(op.Key) == 0 || op.Key[0] != 0 && op.Key[0] != reservedPrefix[0] {
		return 0 // nearly always
	}
	return rule.DatabaseOf(op.Key)
}

// Flush returns an OpFlush of a database in the group that owns a slot.
func Flush(database int, slot uint16) Op {
	return Op{Code: OpFlush, Key: []byte(hashslot.Tag(slot)), Cost: int64(database)}
}

// flush records in all shards that a database is to be emptied. The caller holds their locks. Like the usage of
// policies (forgotten.go), each shard removes it before any other access.
func (t *Table) flush(op *Op, d *Decision) {
	for i := range t.shards {
		t.shards[i].flushed |= 1 << op.Cost
	}
	*d = Decision{Allowed: 1}
}

// isFlushed reports whether an entry is of a database that was emptied. Allocations are removed with their limiter.
func (s *shard) isFlushed(c *store.Cell) bool {
	if s.flushed == 0 || c.Space == store.Allocations {
		return false
	}
	key := c.Key
	if c.Space == store.Tokens {
		of, ok := store.KeyOfToken(key)
		if !ok {
			return false
		}
		key = of
	}
	return s.flushed>>rule.DatabaseOf(key)&1 != 0
}

// dropForgotten removes an entry. Of a key with a block everywhere it leaves that block, which is of all databases.
func (s *shard) dropForgotten(c *store.Cell) {
	if c.Space == store.Blocks {
		c.Live = true
		if _, all := s.blocksOf(c); all.UntilNs != 0 {
			s.setBlocks(c, store.Block{}, all) // takes no memory: the entry becomes shorter or stays as it is
			return
		}
	}
	s.Drop(c)
}
