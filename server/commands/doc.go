// Package commands carries out the commands of Redis clients. A Session is one client above its
// transport: it turns commands into operations of the engine, hands whole pipelines to the
// service layer, and writes the replies. Shared is what the sessions of one server share.
//
// # Commands
//
// A command is one row of the command table; dispatch, arity errors, COMMAND, weir help and
// docs/commands.md are all made from it. A family is a function that makes rows, and
// new.go lists them: another family costs a file and a line there. A row either plans
// operations and answers their decisions, or runs at once. Readers of arguments are in package
// arg, and what policies are written like is in package policytext.
//
// # What it promises
//
//   - Replies keep the order of their commands: whatever is not a plain decision settles first
//     what waits before it.
//   - Arguments are slices of the read buffer; they are used until the session settles.
//   - There is no goroutine, channel or allocation per decision.
//
// # What it leaves to others
//
// Reading, framing and writing, and with them connections (package server); counting, events
// and waiting in line, which all protocols share (package service).
package commands
