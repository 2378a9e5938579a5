// Package detector is the failure detector of a host with several Raft groups. It pings every other host, once for all
// groups. When a host has been silent for the limit, the detector asks the other hosts whether they have heard nothing
// from it for as long. If the hosts that agree are a majority of a group's voters, one voter after the other stands for
// election in this group, until the group has another leader.
//
// Only the speed of a failover depends on the detector. Each group still elects a leader by its own heartbeats when the
// detector misses a failure. A wrong accusation costs an election, and can break no promise: the voters check terms and
// logs as in any election.
//
// A cut between two hosts must not depose a leader that the others reach. An election after a silence has no pre-vote,
// so the majority must confirm the silence before it. A host that was paused would find every other host silent, so it
// starts its measurement again.
package detector
