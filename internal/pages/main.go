package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
)

func main() {
	lint := flag.Bool("lint", false, "check the English of the pages, and write nothing")
	flag.Parse()
	failed := false
	for _, name := range flag.Args() {
		var found []string
		var err error
		if *lint {
			found, err = problems(name)
		} else {
			err = write(name)
		}
		if err != nil {
			found = append(found, "pages: "+err.Error())
		}
		for _, one := range found {
			fmt.Fprintln(os.Stderr, one)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}

// write updates the table of contents of a page. It leaves a page without markers unchanged.
func write(name string) error {
	page, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	filled, err := withContents(string(page))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if bytes.Equal(page, []byte(filled)) {
		return nil
	}
	return os.WriteFile(name, []byte(filled), 0o644)
}
