// Package clienttest tests weir as its users meet it: the built binary as a
// process of its own, and the Redis clients people use, unchanged and with their
// defaults. It has no code besides its tests.
//
// All clients read the same vectors.json: commands with the replies they must
// get, one pipeline and one transaction. Each runs them, is disconnected by a
// kill of the server, finds its way back by itself and runs them again; then
// with the right password and a wrong one. A test clock makes every reply exact.
// What a client logs on the way is a failure, but for the lost connection itself.
//
// Cluster clients count units against three real nodes while leadership is handed
// over, the leader is killed, and it comes back: they must find the leader, and
// nothing they were told may be missing from the count. A network that loses a
// reply shows which of them send again, and that with an ID it counts once.
//
// The Go clients, redis-cli and redis-benchmark run with "go test". The clients
// of other languages need their toolchains and a package registry, so they run
// only with WEIRTEST_CLIENTS=1 ("make test-clients"). Their programs stand in
// the directories named after the languages, with their versions pinned, and
// are installed under .cache.
//
// Limiter libraries whose scripts weir recognises run the same way, from the
// directories under limiters: each says the same to weir and to a judge, a real Redis
// whose clock is the test's, and must hear the same.
//
// Tests start servers with the policy files of docs/examples and expect the figures that the
// systems of docs/systems.md name. TestSystemsPage compares the page with the tests it names.
package clienttest
