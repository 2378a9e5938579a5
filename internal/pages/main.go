package main

import (
	"bytes"
	"fmt"
	"os"
)

func main() {
	for _, name := range os.Args[1:] {
		if err := write(name); err != nil {
			fmt.Fprintln(os.Stderr, "pages:", err)
			os.Exit(1)
		}
	}
}

// write brings the table of contents of a page up to date. A page without a place for one stays
// as it is.
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
