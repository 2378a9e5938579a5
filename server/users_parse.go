package server

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-project/weir/engine"
)

// The bounds of a users file: more than any list of services, little to hold.
const (
	// MaxUsersBytes bounds the file.
	MaxUsersBytes = 1 << 20
	maxUsers      = 1024
	maxUserRules  = 256
	maxUserBytes  = 64
)

var (
	// errUsers begins what is wrong with a users file.
	errUsers    = errors.New("bad users file")
	errUserLine = errors.New("a line must be like: user app on #<SHA-256 of the password> ~app:* +@decide +@connection")
)

// parseUsers reads users in the form of Redis' ACL files: a line "user <name> <rule> ..."
// for each; empty lines, and those that begin with #, are passed over. The rules are
// carried out in order; a user begins as off, with no password, no command and no key:
//
//	on, off              whether the user may log in
//	#<hash>              a password, by its SHA-256 in 64 hexadecimal digits
//	nopass               any password is right
//	~<pattern>, allkeys  keys that decisions and looks may name
//	+@<category>, -@<category>, +<command>, -<command>, +<command>|<subcommand>, ...
//	allcommands, nocommands
//
// &*, allchannels and sanitize-payload are accepted and change nothing: they stand in
// every ACL LIST.
func parseUsers(commands commandSet, text []byte) (*Users, error) {
	if len(text) > MaxUsersBytes {
		return nil, fmt.Errorf("%w: it must have at most %d bytes", errUsers, MaxUsersBytes)
	}
	users, number := &Users{byName: make(map[string]*user)}, 0
	for line := range bytes.Lines(text) {
		number++
		words := strings.Fields(string(line))
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		u, err := parseUser(commands, words)
		switch {
		case err != nil:
		case users.byName[u.name] != nil:
			err = fmt.Errorf("user %q stands here twice", u.name)
		case len(users.byName) == maxUsers:
			err = fmt.Errorf("there may be at most %d users", maxUsers)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", errUsers, number, err)
		}
		users.byName[u.name] = u
	}
	if len(users.byName) == 0 {
		return nil, fmt.Errorf("%w: no user is in it; %w", errUsers, errUserLine)
	}
	return users, nil
}

func parseUser(commands commandSet, words []string) (*user, error) {
	if words[0] != "user" || len(words) < 2 {
		return nil, errUserLine
	}
	u := &user{name: words[1], commands: make([]bool, commands.Len())}
	if len(u.name) > maxUserBytes || strings.ContainsFunc(u.name, func(c rune) bool { return c < '!' || c > '~' }) {
		return nil, fmt.Errorf("a user's name must have at most %d characters, none of them special", maxUserBytes)
	}
	if len(words) > 2+maxUserRules {
		return nil, fmt.Errorf("user %q: at most %d rules", u.name, maxUserRules)
	}
	for _, rule := range words[2:] {
		if err := u.apply(commands, rule); err != nil {
			return nil, fmt.Errorf("user %q: %w", u.name, err)
		}
	}
	u.limited = !u.allKeys || slices.Contains(u.commands, false)
	return u, nil
}

// apply carries out one rule.
func (u *user) apply(commands commandSet, rule string) error {
	switch {
	case rule == "on" || rule == "off":
		u.on = rule == "on"
		return nil
	case rule == "nopass":
		u.nopass = true
		return nil
	case rule[0] == '#':
		return u.addPassword(rule[1:])
	case rule[0] == '>' || rule[0] == '<':
		return errors.New("passwords stand here as #<hash> only: printf %s the-password | sha256sum")
	case rule == "sanitize-payload" || rule == "&*" || rule == "allchannels":
		return nil
	case rule == "allkeys" || rule == "~*":
		u.allKeys = true
	case rule[0] == '~' && len(rule) <= engine.MaxKeyLen:
		u.keys = append(u.keys, []byte(rule[1:]))
	default:
		if err := u.allow(commands, rule); err != nil {
			return err
		}
	}
	u.rules = append(u.rules, rule)
	return nil
}

// addPassword never repeats what stands there: it may be the password itself.
func (u *user) addPassword(text string) error {
	var hash passwordHash
	if n, err := hex.Decode(hash[:], []byte(text[:min(len(text), 2*len(hash))])); err != nil || n != len(hash) || len(text) != 2*len(hash) {
		return errors.New("a password must be # and its SHA-256 in 64 hexadecimal digits")
	}
	u.passwords = append(u.passwords, hash)
	return nil
}

// allow carries out a rule about commands.
func (u *user) allow(commands commandSet, rule string) error {
	switch rule {
	case "allcommands":
		rule = "+@all"
	case "nocommands":
		rule = "-@all"
	}
	grant, what := rule[0] == '+', strings.ToLower(rule[1:])
	if !grant && rule[0] != '-' {
		return fmt.Errorf("rule %s must be on, off, nopass, #<hash>, ~<pattern>, +@<category>, -@<category>, +<command> or -<command>", quote([]byte(rule)))
	}
	named := commands.Named(what)
	if len(named) == 0 {
		return fmt.Errorf("rule %s names no command or category: ACL CAT lists them", quote([]byte(rule)))
	}
	for _, command := range named {
		u.commands[command] = grant
	}
	return nil
}
