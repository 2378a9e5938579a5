package wire

// GroupCount is a number of Raft groups in a file or a message. It is 0 for one group, because version 0.1.0 does not
// write it.
type GroupCount int

// CountGroups returns the GroupCount of a number of groups.
func CountGroups(n int) GroupCount {
	if n == 1 {
		return 0
	}
	return GroupCount(n)
}

// N returns the number of groups.
func (c GroupCount) N() int { return max(int(c), 1) }
