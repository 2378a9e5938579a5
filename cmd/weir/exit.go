package main

import "errors"

// quiet is an outcome that a command has told already, and tells once more by its exit code.
type quiet struct {
	text string
	code int
}

func (q *quiet) Error() string { return q.text }

// trouble is an error of a command whose exit code 1 means something else.
type trouble struct{ error }

// exitTrouble is the exit code of an error, as diff has it.
const exitTrouble = 2

func (trouble) ExitCode() int   { return exitTrouble }
func (t trouble) Unwrap() error { return t.error }

// troubled gives an error the exit code 2, but for outcomes.
func troubled(err error) error {
	if q := (*quiet)(nil); err == nil || errors.As(err, &q) {
		return err
	}
	return trouble{err}
}
