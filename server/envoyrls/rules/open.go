package rules

import "github.com/weir-project/weir/internal/filewatch"

// maxBytes bounds the files of a configuration together. As many descriptors as it may have need less.
const maxBytes = 64 << 20

// Watch returns a watcher of the files of a configuration.
func Watch(paths []string) *filewatch.Watcher { return filewatch.New(maxBytes, paths...) }

// Files makes files of what a watcher has read.
func Files(read []filewatch.File) (files []File) {
	for _, f := range read {
		files = append(files, File{f.Path, f.Data})
	}
	return files
}

// Open reads the files of a configuration. Of a directory it reads every file whose name ends in .yaml or .yml and does
// not begin with a dot, in the order of names, and no directory inside it.
func Open(paths []string) ([]File, error) {
	files, err := Watch(paths).Read()
	return Files(files), err
}
