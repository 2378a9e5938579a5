package policy

import (
	"fmt"
	"io"
	"os"

	"github.com/weir-project/weir/internal/cli/cmdline"
	"github.com/weir-project/weir/internal/cli/terminal"
	"github.com/weir-project/weir/policyfile"
)

// TestCmd runs the tests of policy files.
type TestCmd struct {
	Files []string `arg:"" name:"file" help:"Policy files with tests in them, or files of tests that name policy files."`
}

// errTestsFail makes test exit with the code for a failed test.
var errTestsFail error = &cmdline.Outcome{Text: "tests failed", Code: 1}

func (t *TestCmd) Run() error { return cmdline.AsTrouble(t.test(os.Stdout)) }

// test runs all files and writes a line for each test.
func (t *TestCmd) test(w io.Writer) error {
	files := make([]*policyfile.File, len(t.Files))
	for i, path := range t.Files {
		var err error
		if files[i], err = policyfile.OpenTests(path); err != nil {
			return err
		}
	}
	tests, failed := 0, 0
	for _, file := range files {
		results, err := file.RunTests()
		if err != nil {
			return err
		}
		for _, r := range results {
			tests++
			if len(r.Failures) > 0 {
				failed++
			}
			writeResult(w, file.Path, &r)
		}
	}
	if _, err := fmt.Fprintf(w, "%d tests, %d failed\n", tests, failed); err != nil || failed == 0 {
		return err
	}
	return errTestsFail
}

// writeResult writes a line for a test, and a line for each failed expectation.
func writeResult(w io.Writer, path string, r *policyfile.Result) {
	verdict := "ok  "
	if len(r.Failures) > 0 {
		verdict = "FAIL"
	}
	fmt.Fprintf(w, "%s  %s:%d: %s\n", verdict, path, r.Test.Line, terminal.PlainText(r.Test.Name))
	for _, f := range r.Failures {
		fmt.Fprintf(w, "      %s:%d: %s: expected %s, got %s\n",
			path, f.Line, terminal.PlainText(f.Step), terminal.PlainText(f.Expected), terminal.PlainText(f.Came))
	}
}
