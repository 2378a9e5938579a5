// Package policytext reads and writes policies as RL.POLICY takes them. The commands of the
// server and the policy files of package policyfile share it, so that a policy is written in
// one way everywhere.
//
// Parse reads a whole change; Find gives the reader of one subcommand. Words, Limits and Rule
// write what is read back. Errors are those that a client reads.
package policytext
