// Command pages writes the tables of contents of the documents, and its tests hold all pages of
// the repository to a few rules: links lead somewhere, commands can be pasted, and messages of the
// program cite pages that exist.
//
//	go run ./internal/pages docs/*.md
//
// With -lint it writes nothing, and checks the English of the pages instead: no sentence is longer than
// 30 words, each names the component that acts, and each uses the field's term where there is one.
//
//	go run ./internal/pages -lint README.md docs/*.md
package main
