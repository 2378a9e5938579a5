package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/weir-project/weir/bench"
)

// benchOutputs are the files that a run writes in addition to its table.
type benchOutputs struct {
	JSON     string `env:"-" name:"json" placeholder:"FILE" help:"Write everything, each sample and command included, to this file."`
	HTML     string `env:"-" name:"html" placeholder:"FILE" help:"Write a page with charts to this file; it needs no other file and no network."`
	Markdown string `env:"-" placeholder:"FILE" help:"Replace the figures between the markers in this file, like docs/benchmarks.md; not after a run that failed or was interrupted."`
}

// write writes the requested files, and reports their paths. After a failure or an interrupt, JSON and HTML get the
// results so far. The Markdown page keeps the results of its last complete run.
func (b benchOutputs) write(said io.Writer, report *bench.Report, failed error) error {
	err := errors.Join(
		writeFile(said, b.JSON, report.WriteJSON),
		writeFile(said, b.HTML, report.WriteHTML),
	)
	switch {
	case b.Markdown == "":
		return err
	case failed != nil:
		_, sayErr := fmt.Fprintln(said, "left as it is:", b.Markdown)
		return errors.Join(err, sayErr)
	}
	return errors.Join(err, b.writeMarkdown(said, report))
}

func writeFile(said io.Writer, name string, write func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	_, err = fmt.Fprintln(said, "written:", name)
	return err
}

func (b benchOutputs) writeMarkdown(said io.Writer, report *bench.Report) error {
	page, err := os.ReadFile(b.Markdown)
	if err != nil {
		return err
	}
	page, err = report.Insert(page)
	if err != nil {
		return fmt.Errorf("%s: %w", b.Markdown, err)
	}
	return writeFile(said, b.Markdown, func(w io.Writer) error {
		_, err := w.Write(page)
		return err
	})
}

type compareCmd struct {
	Before string `arg:"" type:"existingfile" help:"JSON of the earlier run."`
	After  string `arg:"" type:"existingfile" help:"JSON of the later run."`
}

// Run compares two reports. It returns no error when the second report is slower.
func (c *compareCmd) Run() error {
	before, err := readReport(c.Before)
	if err != nil {
		return err
	}
	after, err := readReport(c.After)
	if err != nil {
		return err
	}
	return bench.CompareReports(before, after).WriteText(os.Stdout)
}

func readReport(name string) (*bench.Report, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	report, err := bench.ReadReport(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return report, nil
}
