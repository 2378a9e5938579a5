// Package syntax reads the syntax lines of the command table into arguments, as COMMAND DOCS and
// generators of commands need them. It reads lines that the program itself contains and promises
// nothing about others; it leaves to package commands what an argument means.
package syntax
