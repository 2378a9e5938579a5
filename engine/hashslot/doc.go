// Package hashslot maps keys to the 16,384 hash slots of Redis Cluster, and divides the slots among Raft groups.
//
// The slot of a key is CRC-16/XMODEM of the key modulo 16,384. If the key has a hash tag, a part in braces, only that
// part counts, so that keys with the same tag are in the same slot. See the Redis Cluster specification,
// https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/.
package hashslot
