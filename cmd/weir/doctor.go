package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/weir-project/weir/internal/cli/cmdline"
	"github.com/weir-project/weir/internal/cli/terminal"
)

// doctorCmd looks at what weir serve would be given with the same flags, variables and
// file, and asks the server where one runs there.
type doctorCmd struct {
	serveCmd     `embed:""`
	User         string `env:"-" placeholder:"NAME" help:"Ask the running server as this user; default unless given."`
	PasswordFile string `env:"-" placeholder:"FILE" help:"File that holds that user's password; the server's own unless given."`
	JSON         bool   `env:"-" name:"json" help:"Print JSON."`

	slips error // variables that no flag reads, and values that mean nothing
}

// doctorName is how the command is called.
const doctorName = "doctor"

// verdict says how bad a finding is.
type verdict string

const (
	fine  verdict = "ok"
	doubt verdict = "warn" // it works, and may stop to
	wrong verdict = "fail" // it does not work, or not as the flags promise
)

// finding is what one look has found: one line.
type finding struct {
	Verdict verdict `json:"verdict"`
	Check   string  `json:"check"`
	Found   string  `json:"found"`
	Do      string  `json:"do,omitempty"` // how to mend it
}

// errUnfit is how doctor says with its exit code that something failed.
var errUnfit = errors.New("not fit to serve")

func (d *doctorCmd) Run() error { return d.tell(os.Stdout, d.examine()) }

// examine looks at everything. It changes nothing but for a file that it writes to the
// data directory's file system and takes away at once.
func (d *doctorCmd) examine() []finding {
	found := d.lookAtConfig()
	up, ports := d.lookAtPorts()
	if up != nil {
		defer up.conn.Close()
	}
	for _, more := range [][]finding{
		ports, d.lookAtVersions(up), d.lookAtClock(up), d.lookAtDisk(), d.lookAtLimits(up), d.lookAtCertificates(), d.lookAtCluster(up),
	} {
		found = append(found, more...)
	}
	return found
}

// tell writes the findings, and returns errUnfit when one of them fails.
func (d *doctorCmd) tell(w io.Writer, found []finding) error {
	err := d.write(w, found)
	var failed []string
	for _, f := range found {
		if f.Verdict == wrong {
			failed = append(failed, f.Check)
		}
	}
	if err == nil && len(failed) > 0 {
		err = fmt.Errorf("%w: %s", errUnfit, strings.Join(failed, ", "))
	}
	return err
}

func (d *doctorCmd) write(w io.Writer, found []finding) error {
	if d.JSON {
		return terminal.WriteJSON(w, found)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range found {
		if f.Do != "" {
			f.Found += ": " + f.Do
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", f.Verdict, f.Check, terminal.PlainText(f.Found)) // other programs may have said it
	}
	return t.Flush()
}

// lookAtConfig reads the files that the flags name, as serve would.
func (d *doctorCmd) lookAtConfig() []finding {
	quiet := slog.New(slog.DiscardHandler)
	_, password := d.readPassword()
	_, secret := cmdline.SecretFrom("cluster-secret", d.ClusterSecret, d.ClusterSecretFile)
	_, policies := openPolicies(d.Policies, quiet)
	var users error
	if load := d.userLoader(); load != nil {
		_, users = load()
	}
	if err := errors.Join(d.slips, d.check(), password, secret, policies, users); err != nil {
		return []finding{{wrong, "config", oneLine(err), "correct it, weir does not start with it"}}
	}
	from := "the flags and variables are sound"
	if d.Config != "" {
		from = d.Config + ", the flags and variables are sound"
	}
	return append([]finding{{fine, "config", from, ""}}, d.lookAtSecrets()...)
}

// lookAtSecrets looks for files that every user of this machine may read. It is a doubt
// only: in a container the directory above often keeps others out, and there is no other
// user.
func (d *doctorCmd) lookAtSecrets() (found []finding) {
	for _, file := range []struct{ flag, path string }{
		{"--requirepass-file", d.RequirepassFile}, {"--cluster-secret-file", d.ClusterSecretFile},
	} {
		if at, err := os.Stat(file.path); err == nil && at.Mode()&secretModes != 0 {
			found = append(found, finding{doubt, "config", file.flag + " " + file.path + " can be read by every user", "chmod o= " + file.path})
		}
	}
	return found
}

// oneLine is the text of an error that may be several joined.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
