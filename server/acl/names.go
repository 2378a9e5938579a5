package acl

import "github.com/weir-project/weir/engine"

// ownNames returns all names that the limiters of a policy for a key may have.
func ownNames(policy string, key []byte) (names [][]byte) {
	for i := range engine.MaxPolicyLimits {
		names = append(names, engine.LimiterName(policy, i, key))
	}
	return names
}

// ownNamesOf returns the names of the limiters that an operation reaches through a client-supplied name. It returns nil
// for any other operation.
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

// MayReach reports whether a user may use the limiters to which a name refers, besides the name itself.
func (u *User) MayReach(policies *engine.Policies, name []byte) bool {
	p, key := policies.OfLayout(name)
	return p == nil || u.AllKeys || u.mayUseAll(ownNames(p.Name, key))
}
