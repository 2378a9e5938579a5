package cmdline

import "errors"

// Outcome is an error that a command has already printed. It only sets the exit code.
type Outcome struct {
	Text string
	Code int
}

func (o *Outcome) Error() string { return o.Text }

// trouble is an error of a command whose exit code 1 has another meaning, such as "differences were found".
type trouble struct{ error }

// exitTrouble is the exit code of trouble. diff(1) uses the same code.
const exitTrouble = 2

// ExitCode implements the interface by which kong reads exit codes.
func (trouble) ExitCode() int   { return exitTrouble }
func (t trouble) Unwrap() error { return t.error }

// AsTrouble gives an error the exit code 2, as diff(1) does. An Outcome keeps its own code.
func AsTrouble(err error) error {
	if o := (*Outcome)(nil); err == nil || errors.As(err, &o) {
		return err
	}
	return trouble{err}
}
