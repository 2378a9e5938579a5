// Package acl defines the users of a server and their permissions, as Redis' ACL does. Parse reads the users of a file,
// and WithDefault adds the user default. User checks whether a command, a key or an operation is permitted.
// FailedLogins delays logins from an address that guesses passwords.
//
// Users and User are immutable. A server that reads its file again gets new ones. The package identifies commands by
// number through the interface Commands. The server selects the file, and handles clients whose user has changed.
package acl
