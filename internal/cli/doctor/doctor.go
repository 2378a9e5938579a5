// Package doctor checks the configuration of a server and the server that runs with it (weir doctor). For each check it
// reports the result, and for a problem the next step.
package doctor

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/weir-project/weir/certs"
	"github.com/weir-project/weir/internal/cli/terminal"
)

// Subject is a server as its flags describe it. The caller reads files, passwords and memory in the same way as the
// server.
type Subject struct {
	Config   string // its configuration file; empty for none
	Mistakes error  // why it does not start with these flags, variables and files

	DataDir                            string
	NodeID, NodeName                   string // NodeName is also set for a cluster of one
	Clustered                          bool
	Listen, TLSListen, HTTP, RLS       string
	HTTPTLS                            bool
	RaftAddr, RaftPort, Advertise      string
	Join                               []string
	Exposed                            error // set if other machines could reach a port without authentication
	RequirepassFile, ClusterSecretFile string
	TLSCertFile, TLSKeyFile            string
	RaftTLSCertFile, RaftTLSKeyFile    string
	RaftTLSCAFile                      string
	ClientAuth                         tls.ClientAuthType
	Certificate, NodeCertificate       func() (*certs.Store, error) // nil if no flag names one
	MaxClients                         int
	FileLimit                          func() (uint64, error)
	BesidesClients                     uint64 // file descriptors that are reserved for other uses than clients
	MachineMemory                      int64
	MemoryBound                        func(machine int64) int64 // bound of the limiters' memory, by the machine's
	User, Password                     string                    // the login at the running server
	PasswordError                      error
}

// Verdict is the severity of a finding.
type Verdict string

const (
	Fine  Verdict = "ok"
	Doubt Verdict = "warn" // works now, and may become a problem
	Wrong Verdict = "fail" // does not work, or not as the flags say
)

// Finding is the result of one check: one line.
type Finding struct {
	Verdict Verdict `json:"verdict"`
	Check   string  `json:"check"`
	Found   string  `json:"found"`
	Do      string  `json:"do,omitempty"` // how to correct it
}

// ErrUnfit makes doctor exit with the code for a failed check.
var ErrUnfit = errors.New("the server cannot run like this")

// Examine runs all checks. Its only write is a file on the file system of the data directory, which it removes at once.
func (d *Subject) Examine() []Finding {
	found := d.lookAtConfig()
	up, ports := d.lookAtPorts()
	if up != nil {
		defer up.conn.Close()
	}
	for _, more := range [][]Finding{
		ports, d.lookAtVersions(up), d.lookAtClock(up), d.lookAtDisk(), d.lookAtLimits(up), d.lookAtCertificates(),
		d.lookAtCluster(up), d.lookAtUnsupported(up),
	} {
		found = append(found, more...)
	}
	return found
}

// Tell writes the findings, and returns ErrUnfit if one of them fails.
func Tell(w io.Writer, found []Finding, asJSON bool) error {
	err := write(w, found, asJSON)
	var failed []string
	for _, f := range found {
		if f.Verdict == Wrong {
			failed = append(failed, f.Check)
		}
	}
	if err == nil && len(failed) > 0 {
		err = fmt.Errorf("%w: %s", ErrUnfit, strings.Join(failed, ", "))
	}
	return err
}

func write(w io.Writer, found []Finding, asJSON bool) error {
	if asJSON {
		return terminal.WriteJSON(w, found)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range found {
		if f.Do != "" {
			f.Found += ": " + f.Do
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", f.Verdict, f.Check, terminal.PlainText(f.Found)) // may quote another program
	}
	return t.Flush()
}

// lookAtConfig reports the problems of the flags and of the files that they name.
func (d *Subject) lookAtConfig() []Finding {
	if err := d.Mistakes; err != nil {
		return []Finding{{Wrong, "config", oneLine(err), "correct it: weir does not start with this setting"}}
	}
	from := "the flags and variables are valid"
	if d.Config != "" {
		from = d.Config + ", the flags and variables are valid"
	}
	return append([]Finding{{Fine, "config", from, ""}}, d.lookAtSecrets()...)
}

// lookAtSecrets looks for secret files that every user of this machine may read. The verdict is only a warning. In a
// container the directory above often restricts access, and no other user exists.
func (d *Subject) lookAtSecrets() (found []Finding) {
	for _, file := range []struct{ flag, path string }{
		{"--requirepass-file", d.RequirepassFile}, {"--cluster-secret-file", d.ClusterSecretFile},
	} {
		if at, err := os.Stat(file.path); err == nil && at.Mode()&secretModes != 0 {
			found = append(found, Finding{Doubt, "config", file.flag + " " + file.path + " can be read by every user",
				"chmod o= " + file.path})
		}
	}
	return found
}

// oneLine joins the lines of an error, which may be several joined errors.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
