package engine

// Audit checks all shards of a table; see store.Store.Audit.
func Audit(t *Table) error {
	for i := range t.shards {
		if err := t.shards[i].Audit(); err != nil {
			return err
		}
	}
	return nil
}
