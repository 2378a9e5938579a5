package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// pathSpan is a code span that names a file or a directory: `engine/doc.go`, `server/page/`.
var pathSpan = regexp.MustCompile("`([a-z][\\w-]*/[\\w./-]+)`")

// missingPaths returns the files and directories that a page names and that the repository lacks. A path counts if its
// first element is a directory at the root other than bin, which is built.
func missingPaths(root, name string) (missing []string, err error) {
	page, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	_, _, prose := parse(string(page))
	for i, line := range prose {
		for _, match := range pathSpan.FindAllStringSubmatch(line, -1) {
			path, _, _ := strings.Cut(match[1], ".Test") // engine.TestModel is a test of a package
			path = strings.TrimSuffix(path, "/...")
			top, _, _ := strings.Cut(path, "/")
			if top != "bin" && exists(filepath.Join(root, top)) && !exists(filepath.Join(root, path)) {
				missing = append(missing, fmt.Sprintf("%s:%d: %s: not in the repository", name, i+1, path))
			}
		}
	}
	return missing, nil
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}
