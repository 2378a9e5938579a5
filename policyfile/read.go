package policyfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/filewatch"
)

// MaxBytes bounds a policy file, and the files of a server together. It allows for as many policies as a table can
// have, and for comments.
const MaxBytes = 2 * engine.MaxPolicyBytes

// maxInclude bounds the number of files that a file with tests may name in the field files.
const maxInclude = 100

// ErrFile is wrapped by every error about the content of a file.
var ErrFile = errors.New("bad policy file")

// File is the content of a policy file, in its order.
type File struct {
	Path  string // name of the file in errors
	Owner string // owner of the policies; empty: none
	// Include has the field files: the names of further files whose policies the tests use.
	Include  []string
	Policies []Policy
	Tests    []Test
}

// Policy is one policy of a file.
type Policy struct {
	Name      string
	Line      int
	Set       engine.Op   // the OpPolicy that sets its terms, without an owner
	Overrides []engine.Op // the OpPolicy for each override
}

// Open reads a policy file whose policies are to be applied to a server. It rejects a file with the field files.
func Open(path string) (*File, error) {
	f, err := open(path)
	if err == nil {
		err = f.applies()
	}
	return f, err
}

// ReadTogether reads policy files whose policies are to be applied to a server together. It rejects a file with the
// field files, and a policy that two files name.
func ReadTogether(texts []filewatch.File) (files []*File, err error) {
	in := map[string]string{}
	for _, text := range texts {
		f, err := Read(bytes.NewReader(text.Data), text.Path)
		if err == nil {
			err = f.applies()
		}
		if err != nil {
			return nil, err
		}
		for _, p := range f.Policies {
			if other, twice := in[p.Name]; twice {
				return nil, fmt.Errorf("%w %s:%d: policy %s is also in %s", ErrFile, f.Path, p.Line, p.Name, other)
			}
			in[p.Name] = f.Path
		}
		files = append(files, f)
	}
	return files, nil
}

// applies returns an error for a file that has no policies of its own to apply.
func (f *File) applies() error {
	if len(f.Include) > 0 {
		return fmt.Errorf("%w %s: a file with the field 'files' is one of tests, for 'weir policy test'; "+
			"name the files themselves: %s", ErrFile, f.Path, strings.Join(f.Include, ", "))
	}
	return nil
}

func open(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	defer f.Close()
	return Read(f, path)
}

// Read reads a policy file. name identifies it in errors.
func Read(from io.Reader, name string) (*File, error) {
	r := io.LimitedReader{R: from, N: MaxBytes + 1}
	var doc, more yaml.Node
	d := yaml.NewDecoder(&r)
	err := d.Decode(&doc)
	switch {
	case r.N == 0:
		return nil, fmt.Errorf("%w %s: longer than %d bytes", ErrFile, name, MaxBytes)
	case errors.Is(err, io.EOF): // for example after a failed redirection
		return nil, fmt.Errorf("%w %s: the file is empty; write 'policies: {}' for no policies", ErrFile, name)
	case err != nil && strings.Contains(err.Error(), "cannot start any token"):
		return nil, fmt.Errorf("%w %s: %w: YAML is indented by spaces, not by tabs", ErrFile, name, err)
	case err != nil:
		return nil, fmt.Errorf("%w %s: %w", ErrFile, name, err)
	}
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf(
			"%w %s: it has a second document after '---', but a policy file must have only one", ErrFile, name)
	}
	f := &File{Path: name}
	if err := f.read(doc.Content[0]); err != nil {
		return nil, fmt.Errorf("%w %s:%w", ErrFile, name, err)
	}
	return f, nil
}

// at returns an error at a line. Read adds the name of the file.
func at(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("%d: %w", n.Line, fmt.Errorf(format, args...))
}

func (f *File) read(top *yaml.Node) error {
	if isEnvoys(top) {
		return at(top, "this is a file of Envoy's rate limit service, with domain and descriptors; a policy file of "+
			"weir has policies: docs/http.md#envoy says which policy a descriptor has")
	}
	return fields(top, "the file", map[string]func(*yaml.Node) error{
		"owner":    f.readOwner,
		"policies": f.readPolicies,
		"files":    func(n *yaml.Node) (err error) { f.Include, err = texts(n, "files", maxInclude); return err },
		"tests":    f.readTests,
	})
}

// isEnvoys reports whether a document is a configuration of Envoy's rate limit service.
func isEnvoys(n *yaml.Node) bool {
	for i := 0; n.Kind == yaml.MappingNode && i < len(n.Content); i += 2 {
		if n.Content[i].Value == "descriptors" {
			return true
		}
	}
	return false
}

func (f *File) readOwner(n *yaml.Node) (err error) {
	if f.Owner, err = scalar(n); err != nil {
		return err
	}
	if !engine.IsPolicyName([]byte(f.Owner)) || strings.EqualFold(f.Owner, "NONE") {
		return at(n, "owner must be 1 to %d letters, digits and -_.:, and not NONE; got %q",
			engine.MaxPolicyLen, f.Owner)
	}
	return nil
}

func (f *File) readPolicies(all *yaml.Node) error {
	return each(all, "policies", func(name, terms *yaml.Node) error {
		if len(f.Policies) == engine.MaxPolicies {
			return at(name, "at most %d policies", engine.MaxPolicies)
		}
		p := policyReader{name: name}
		if err := p.read(terms); err != nil {
			return err
		}
		f.Policies = append(f.Policies, p.out)
		return nil
	})
}
