package commands

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-project/weir/internal/quote"
	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/service"
)

// doSlowPath runs a command that is not a plain decision. It decides the pending operations first, so that replies
// keep their order.
func (s *Session) doSlowPath(args [][]byte) {
	s.DecidePending()
	mark := s.Len()
	if s.Mute == muteNext {
		s.Mute = muteThis
	}
	s.dispatch(args)
	s.DecidePending()
	if s.Mute != MuteNone {
		s.Truncate(mark)
	}
	if s.Mute == muteThis {
		s.Mute = MuteNone
		s.refresh()
	}
}

// dispatch decides whether the command may run now, and runs or queues it.
func (s *Session) dispatch(args [][]byte) {
	cmd, err := s.srv.table.resolve(args)
	if cmd == nil || !cmd.instant {
		s.client.MayBlock()
	}
	if s.user == nil && (cmd == nil || !cmd.noAuth) {
		err = service.ErrNoAuth
	} else if err != nil && s.user != nil {
		err = unresolved(cmd, args, nearCommands(s, args, err))
	}
	if err == nil {
		err = s.allowed(cmd, args)
	}
	if err == nil {
		err = s.permitted(cmd)
	}
	if err != nil {
		s.reject(cmd, err)
		if s.tx != nil {
			s.tx.broken = true
		}
		return
	}
	if cmd.audited {
		s.audit(cmd, args)
	}
	s.srv.Events.ShowCommand(s.about.Addr, int(s.database), &cmd.Command, args)
	if s.tx != nil && !cmd.atOnce {
		s.enqueue(cmd, args)
		return
	}
	s.srv.Pause.Wait(&cmd.Command, s.srv.Stop)
	s.carryOut(cmd, args)
}

// permitted reports whether the state of the session allows cmd.
func (s *Session) permitted(cmd *command) error {
	switch {
	case s.onlyTopics() && !cmd.pubsub:
		return resp.Error("ERR Can't execute '" + cmd.Full +
			"': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context")
	case s.tx != nil && cmd.noMulti:
		return errNotInMulti
	}
	return nil
}

// carryOut plans an operation, or runs any other command.
func (s *Session) carryOut(cmd *command, args [][]byte) {
	run, bulky := cmd.run, cmd.bulky
	if cmd.plan != nil {
		err := s.plan(cmd, args)
		if err != nil && err != errAlone {
			s.reject(cmd, err)
		}
		if err != errAlone {
			return
		}
		run, bulky = cmd.alone, true
	}
	if bulky {
		s.srv.bulky <- struct{}{}
		defer func() { <-s.srv.bulky }()
	}
	start := time.Now()
	s.failed, s.running = false, cmd
	defer func() { s.running = nil }()
	if cmd.read.run != nil {
		s.read(cmd, args)
	} else {
		s.reads.End() // the next read needs a ReadIndex after this command
		run(s, args)
	}
	took := time.Since(start) - s.heldFor // the time in a queue of RL.WAIT is not work
	s.heldFor = 0
	stat := s.srv.Ran(&s.about, &cmd.Command, 1, start, took)
	if s.failed {
		stat.Failed.Add(1)
	}
	if log := s.srv.Slowlog; log.IsSlow(took) {
		log.Add(&s.about, start, took, service.ShownArgs(&cmd.Command, args))
	}
}

// reject answers a command that was not run. cmd is nil for an unknown command.
func (s *Session) reject(cmd *command, err error) {
	if cmd != nil {
		s.srv.Stats.Reject(&cmd.Command)
	}
	s.failOf(cmd, err)
}

// ProtocolError answers a malformed frame. The connection closes after the answer.
func (s *Session) ProtocolError(err error) {
	s.DecidePending()
	s.fail(resp.Error("ERR Protocol error: " + err.Error()))
	s.Closing = true
}

// fail answers err of the running command, and counts the error by its first word.
func (s *Session) fail(err error) { s.failOf(s.running, err) }

// failOf does the same for a command that may not run. An error that follows from a failed read is none: read answers
// the error of the read.
func (s *Session) failOf(cmd *command, err error) {
	if s.failed = true; s.reads.Failed() != nil {
		return
	}
	if err == arg.ErrSyntax && cmd != nil {
		err = syntaxError(cmd)
	}
	s.noteUnsupported(cmd, err)
	text := service.ErrorText(err)
	s.srv.Stats.CountError(text)
	s.Error(text)
}

// guarded reports whether err is nil. It answers any other err to the client.
func (s *Session) guarded(err error) bool {
	if err != nil {
		s.fail(err)
	}
	return err == nil
}

// auditedArgs and auditedBytes bound the arguments of a command in the audit log, and the bytes of each, so that a log
// line stays shorter than a command.
const (
	auditedArgs  = 16
	auditedBytes = quote.MaxBytes
)

// unaudited are the commands of @admin that only show something, and the commands that reset single limiters.
// Applications reset limiters for each of their users.
var unaudited = []string{
	"acl|users", "acl|list", "acl|getuser", "client|list", "config|get", "debug|digest", "slowlog|get", "slowlog|len",
	"latency|latest", "latency|history", "latency|histogram", "latency|doctor",
	"weir.cluster|status", "weir.backup|next", "weir.unsupported",
	"rl.reset", "del", "unlink",
}

// isAudited reports whether the command is written to the log. Such a command changes what other clients' decisions
// depend on, or observes other clients.
func (c *command) isAudited() bool {
	if slices.Contains(unaudited, c.Full) || c.name == "HELP" {
		return false
	}
	cats := c.categories
	return slices.Contains(cats, "@admin") || slices.Contains(cats, "@policy") && slices.Contains(cats, "@write")
}

// audit logs an administrative command with its sender and address. It logs before the command runs, so that a command
// which ends the process is logged too. A command in a transaction is logged when it is queued.
func (s *Session) audit(cmd *command, args [][]byte) {
	log := s.srv.Log
	if s.database != 0 {
		log = log.With("db", s.database)
	}
	log.Info("audit", "user", s.user.Name, "addr", s.client.RemoteAddr(), "id", s.client.ID(),
		"command", cmd.Full, "args", auditedLine(service.ShownArgs(&cmd.Command, args)), "queued", s.tx != nil)
}

// auditedLine joins arguments so that each stays distinguishable: an argument is quoted as by MONITOR unless it
// consists of ordinary characters. Three dots follow an argument that is cut, or stand for the arguments beyond
// auditedArgs.
func auditedLine(args []string) string {
	var line []byte
	for i, a := range args {
		if i > 0 {
			line = append(line, ' ')
		}
		if i == auditedArgs {
			return string(append(line, "..."...))
		}
		cut := a[:min(len(a), auditedBytes)]
		if a == "" || cut != a || strings.HasPrefix(a, ".") || strings.ContainsFunc(a, needsQuotes) {
			line = strconv.AppendQuoteToASCII(line, cut)
		} else {
			line = append(line, a...)
		}
		if cut != a {
			line = append(line, "..."...)
		}
	}
	return string(line)
}

func needsQuotes(c rune) bool { return c <= ' ' || c == '"' || c == '\\' || c >= 0x7f }
