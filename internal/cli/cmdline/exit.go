package cmdline

import "errors"

// Outcome is an error that a command has printed already. It only sets the exit code.
type Outcome struct {
	Text string
	Code int
}

func (o *Outcome) Error() string { return o.Text }

// trouble is an error of a command whose exit code 1 means something else.
type trouble struct{ error }

// exitTrouble is the exit code of an error, as diff has it.
const exitTrouble = 2

// ExitCode is called by kong.
func (trouble) ExitCode() int   { return exitTrouble }
func (t trouble) Unwrap() error { return t.error }

// AsTrouble gives an error the exit code 2, as diff does. An Outcome keeps its own.
func AsTrouble(err error) error {
	if o := (*Outcome)(nil); err == nil || errors.As(err, &o) {
		return err
	}
	return trouble{err}
}
