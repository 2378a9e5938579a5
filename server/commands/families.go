package commands

import "github.com/weir-project/weir/server/acl"

// families are all commands, in the order of the reference. A family is a function that makes
// its rows: another one needs a line here, and nothing else.
func families() [][]*command {
	return [][]*command{
		decideCommands(), {rlWaitCommand()}, policyCommands(), settleCommands(), blacklistCommands(), lookCommands(),
		keyCommands(), dialectCommands(), scriptCommands(), countCommands(), stringCommands(),
		connectionCommands(), {clientCommand()}, multiCommands(), pubsubCommands(),
		serverCommands(), configCommands(), slowlogCommands(), {commandCommand(), aclCommand(), debugCommand()},
		clusterCommands(), {weirClusterCommand(), weirBackupCommand()},
	}
}

// ParseUsers reads a users file; see package acl.
func ParseUsers(text []byte) (*acl.Users, error) {
	return acl.Parse(newCommandTable(families()...), text)
}
