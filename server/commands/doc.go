// Package commands implements the commands of Redis clients. A [Session] is one client above its transport. It turns
// commands into operations of the engine, passes whole pipelines to the service layer, and writes the replies.
// [Shared] holds the state that the sessions of one server share.
//
// # Commands
//
// A command is one row of the command table. Dispatch, arity errors, COMMAND, weir help and docs/commands.md are all
// made from that table. A family is a function that returns rows, and new.go lists the families. A new family needs a
// file and a line in new.go. A row either plans operations and answers their decisions, or runs at once. Package arg
// reads arguments, and package policytext parses the text form of policies.
//
// # What it promises
//
//   - Replies keep the order of their commands. A command that is not a plain decision decides all pending
//     operations first.
//   - Arguments are slices of the read buffer. They must stay valid until the session has decided them.
//   - A decision needs no goroutine, no channel and no allocation.
//
// # What it leaves to others
//
// Package server owns the connections: it reads bytes, cuts them into commands, and writes replies. Package service
// counts, emits events, and keeps the queues of waiting requests. All protocols share package service.
package commands
