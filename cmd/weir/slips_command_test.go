package main

// slipsOfCommands are those of commands other than weir serve.
var slipsOfCommands = []slip{
	{what: "weir restore into a directory that is not empty", args: "restore text --data-dir=full", code: 1,
		says: []string{`"full"`, "choose an empty or a new one"}},
	{what: "weir restore of what is no backup", args: "restore text --data-dir=new", code: 1,
		says: []string{"text", "this is no whole backup"}},
	{what: "weir restore for a cluster without --node-id",
		args: "restore text --data-dir=new --raft-addr=10.0.0.1:6390", code: 1,
		says: []string{"--raft-addr", "--node-id"}},
	{what: "weir backup over a file", args: "backup text", code: 1,
		says: []string{"text is there already", "another name"}},
	{what: "weir backup of no server", args: "backup new --addr=127.0.0.1:1", code: 1,
		says: []string{"127.0.0.1:1 (--addr)", "connection refused"}},
	{what: "weir cluster add without an address", args: "cluster add b", code: 80,
		says: []string{"weir cluster add needs <raft-addr>"}},
	{what: "weir healthcheck of no server", args: "healthcheck --http=127.0.0.1:1", code: 1,
		says: []string{"--http 127.0.0.1:1", "connection refused"}},
	{what: "TLS files without --tls", args: "keys list --tls-ca-file={ca}", code: 1,
		says: []string{"--tls-ca-file needs --tls"}},
	{what: "weir bench of an unknown suite", args: "bench --suite=fast", code: 80,
		says: []string{"--suite must be one of", `"standard"`}},
	{what: "weir doctor with --join and without --node-id",
		args: "doctor --listen=127.0.0.1:0 --http= --join=127.0.0.1:1", code: 1,
		says: []string{"fail", "config", "--join", "--node-id"}},
	{what: "weir doctor with an unknown variable", args: "doctor --listen=127.0.0.1:0 --http=",
		env: "WEIR_MAX_CLIENT=5", code: 1, says: []string{"fail", "WEIR_MAX_CLIENT", "WEIR_MAX_CLIENTS"}},
}
