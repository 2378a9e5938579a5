// Package clienttest tests weir as its users meet it. The built binary runs as a process of its own. The Redis clients
// are unmodified and have their default settings. The package has no code besides its tests.
//
// All clients read the same vectors.json: commands with the expected replies, one pipeline and one transaction. Each
// client runs them. The test kills the server and starts it again, and the client must reconnect by itself and run them
// once more. Then the client logs in with the right password and with a wrong one. A test clock makes every reply
// exact. A line in the log of a client is a failure, unless it is about the lost connection.
//
// Cluster clients count units at three real nodes. Meanwhile the leadership is transferred, the leader is killed, and
// the killed node starts again. The clients must find the leader, and the count must contain every acknowledged unit.
// The same runs with four Raft groups, whose leaders are spread over the nodes, and with pipelines over all groups. In
// a tier of six nodes, clients know a node without replicas only, while replicas move and other nodes are killed.
// Other tests lose a reply in the network. They show which clients resend the request, and that a request with an ID
// counts once.
//
// The Go clients, redis-cli and redis-benchmark run with "go test". The clients of other languages need their
// toolchains and a package registry, so they run only with WEIRTEST_CLIENTS=1 ("make test-clients"). Their programs are
// in the directories named after the languages. The versions are pinned, and installed under .cache.
//
// Limiter libraries whose scripts weir recognises run in the same way, from the directories under limiters. Each
// library sends the same calls to weir and to the judge: a real Redis whose clock the test sets. Both must give the
// same answers.
//
// The tests of the systems in examples/systems/requirements.md start servers with the policy files of docs/examples,
// and expect the figures of that page. TestSystemsPage compares the page with the tests that it names.
package clienttest
