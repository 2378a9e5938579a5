package chaos

import (
	"fmt"
	"sync"
)

// Violation is a broken guarantee.
type Violation struct {
	What string // the guarantee or the key
	Err  error
}

func (v Violation) String() string { return fmt.Sprintf("%s: %v", v.What, v.Err) }

// maxViolations bounds the stored violations, because a faulty server breaks its guarantees continuously.
const maxViolations = 100

// Violations collects violations. It is safe for use by several goroutines.
type Violations struct {
	mu    sync.Mutex
	list  []Violation
	total int
}

// Add adds a violation, unless err is nil.
func (v *Violations) Add(what string, err error) {
	if err == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.total++
	if len(v.list) < maxViolations {
		v.list = append(v.list, Violation{what, err})
	}
}

// List returns the stored violations, and the total number.
func (v *Violations) List() ([]Violation, int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]Violation(nil), v.list...), v.total
}
