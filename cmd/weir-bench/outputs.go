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
	Markdown string `env:"-" placeholder:"FILE" help:"Replace the figures between the markers in this file, like bench/full-run.md; not after a run that failed or was interrupted."`
}

// write writes the requested files, and reports their paths. After a failure or an interrupt, the JSON gets the
// results so far. The Markdown page keeps the results of its last complete run.
func (b benchOutputs) write(said io.Writer, report *bench.Report, failed error) error {
	err := writeFile(said, b.JSON, report.WriteJSON)
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
