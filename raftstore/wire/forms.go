package wire

import "github.com/weir-project/weir/engine"

// Forms are the formats of the log that concern some operations.
type Forms struct {
	Needs   byte // the oldest format that can encode all of them; see FormatOf
	Prefers byte // the format by whose rules they should be decided; see Preferred
}

// FormsOf returns the formats of operations.
func FormsOf(ops []engine.Op) Forms {
	f := Forms{Oldest, Oldest}
	for i := range ops {
		f.Raise(Forms{FormatOf(&ops[i]), Preferred(&ops[i])})
	}
	return f
}

// Raise adds the formats of further operations.
func (f *Forms) Raise(more Forms) {
	f.Needs, f.Prefers = max(f.Needs, more.Needs), max(f.Prefers, more.Prefers)
}
