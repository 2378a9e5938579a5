package rules

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Open reads the files of a configuration. Of a directory it reads every file whose name ends in .yaml or .yml and does
// not begin with a dot, in the order of names, and no directory inside it.
func Open(paths []string) (files []File, err error) {
	for _, path := range paths {
		names := []string{path}
		if info, err := os.Stat(path); err != nil {
			return nil, err
		} else if info.IsDir() {
			if names, err = filesIn(path); err != nil {
				return nil, err
			}
		}
		for _, name := range names {
			if len(files) == MaxFiles {
				return nil, fmt.Errorf("%s: a configuration must have at most %d files", path, MaxFiles)
			}
			f, err := open(name)
			if err != nil {
				return nil, err
			}
			files = append(files, f)
		}
	}
	return files, nil
}

func filesIn(dir string) (names []string, err error) {
	all, err := os.ReadDir(dir) // sorted
	if err != nil {
		return nil, err
	}
	for _, one := range all {
		name := one.Name()
		if ext := filepath.Ext(name); !strings.HasPrefix(name, ".") && (ext == ".yaml" || ext == ".yml") {
			names = append(names, filepath.Join(dir, name))
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: the directory has no file whose name ends in .yaml or .yml", dir)
	}
	return names, nil
}

func open(name string) (f File, err error) {
	file, err := os.Open(name)
	if err != nil {
		return f, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, MaxFileBytes+1))
	return File{name, data}, err
}
