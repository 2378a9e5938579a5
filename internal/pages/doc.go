// Command pages writes the tables of contents of the documents.
//
//	go run ./internal/pages docs/*.md
//
// With -lint it writes nothing and checks the English of the pages instead. No sentence may be longer than 30 words.
// Each sentence must name the component that acts, and must use the field's term if a term exists.
//
//	go run ./internal/pages -lint README.md docs/*.md
//
// The tests of this package check all pages of the repository: links have targets, commands can be pasted, and messages
// of the program cite pages that exist.
package main
