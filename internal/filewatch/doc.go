// Package filewatch reads files, or the YAML files of directories, and notices changes of their content.
//
// It polls, so it sees every way of changing files: an edit in place, a rename over the file, and the swap of the link
// ..data by which Kubernetes updates a mounted ConfigMap. It knows nothing of what the files mean.
package filewatch
