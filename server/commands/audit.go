package commands

import (
	"log/slog"
	"slices"
	"strings"

	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/service"
)

// auditedArgs bounds the arguments of a command that the audit log shows, each of them
// cut like those that errors quote: a line must not become as long as a command.
const auditedArgs = 16

// unaudited are the commands of @admin that only show something, and those that reset
// single limiters, which applications do for each of their users.
var unaudited = []string{
	"acl|users", "acl|list", "acl|getuser", "client|list", "config|get", "debug|digest", "slowlog|get", "slowlog|len",
	"latency|latest", "latency|history", "latency|histogram", "latency|doctor", "weir.cluster|status", "weir.backup|next",
	"rl.reset", "del", "unlink",
}

// isAudited says whether carrying the command out leaves a line in the log: it changes
// what others are decided by, or looks over their shoulders.
func (c *command) isAudited() bool {
	if slices.Contains(unaudited, c.Full) || c.name == "HELP" {
		return false
	}
	cats := c.categories
	return slices.Contains(cats, "@admin") || slices.Contains(cats, "@policy") && slices.Contains(cats, "@write")
}

// audit logs who sends an administrative command from where: before it is carried out,
// so that one that ends the process leaves its line too. In a transaction that is when
// it is queued.
func (s *Session) audit(cmd *command, args [][]byte) {
	shown := service.ShownArgs(&cmd.Command, args[:min(len(args), auditedArgs)])
	for i, arg := range shown {
		shown[i] = strings.Trim(resp.Quote([]byte(arg)), "'")
	}
	if len(args) > auditedArgs {
		shown = append(shown, "...")
	}
	s.srv.Log.Info("audit", "user", s.user.Name, "addr", s.client.RemoteAddr(), "id", s.client.ID(),
		"command", cmd.Full, slog.Any("args", shown), "queued", s.tx != nil)
}
