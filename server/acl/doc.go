// Package acl holds the users of a server and what each of them may do, in the manner of
// Redis' ACL: Parse reads the users of a file, WithDefault adds the user default, User answers
// whether a command, a key or an operation is permitted. FailedLogins delays the logins of an
// address that guesses passwords.
//
// Users and a User do not change; a server that reads its file again gets new ones. Commands
// are known by their numbers only: the table of commands is a Commands. The server decides
// where the file lies, and what happens to clients whose user has changed.
package acl
