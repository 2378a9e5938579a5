package acl

import "github.com/weir-project/weir/engine"

// ownNames returns all names that the limiters of a policy for a key may have.
func ownNames(policy string, key []byte) (names [][]byte) {
	for i := range engine.MaxPolicyLimits {
		names = append(names, engine.LimiterName(policy, i, key))
	}
	return names
}

// ownNamesOf returns the names of all limiters that an operation reaches although the client sent another name, which
// the LAYOUT of a policy makes. It returns nil for an operation that reaches only the keys that it names.
func ownNamesOf(op *engine.Op) [][]byte {
	switch {
	case op.Code == engine.OpResetPolicy:
		policy, _, key, _ := engine.SplitName(op.Key)
		return ownNames(string(policy), key)
	case op.Code == engine.OpCheck && op.Dry:
		return ownNames(string(op.Text), op.Key)
	}
	return nil
}

// MayReach reports whether a user may use the limiters behind a name that the LAYOUT of a policy makes. It returns true
// for any other name. MayUse checks the name itself.
func (u *User) MayReach(policies *engine.Policies, name []byte) bool {
	p, key := policies.OfLayout(name)
	return p == nil || u.AllKeys || u.mayUseAll(ownNames(p.Name, key))
}
