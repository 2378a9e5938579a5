package chaos

import (
	"fmt"
	"sync"
)

// Violation is a promise seen broken.
type Violation struct {
	What string // which promise, or which key
	Err  error
}

func (v Violation) String() string { return fmt.Sprintf("%s: %v", v.What, v.Err) }

// maxViolations are kept; a server that breaks its promises does so at every turn.
const maxViolations = 100

// Violations collects them. Safe for use by several goroutines.
type Violations struct {
	mu    sync.Mutex
	list  []Violation
	total int
}

// Add takes one, unless err is nil.
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

// List is what was kept, and how many there were in all.
func (v *Violations) List() ([]Violation, int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]Violation(nil), v.list...), v.total
}
