// Command pages writes the tables of contents of the documents, and its tests hold all pages of
// the repository to a few rules: links lead somewhere, commands can be pasted, and messages of the
// program cite pages that exist.
//
//	go run ./internal/pages docs/*.md
package main
