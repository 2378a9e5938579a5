package acl

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/quote"
)

// Bounds of a users file. They are larger than any list of services needs, and cost little memory.
const (
	// MaxUsersBytes bounds the file.
	MaxUsersBytes = 1 << 20
	MaxUsers      = 1024
	maxUserRules  = 256
	maxUserBytes  = 64
	// maxCertNameBytes bounds a name in a certificate: a SPIFFE ID has up to 2048 bytes.
	maxCertNameBytes = 2048
)

var (
	// errUsers is wrapped by every error about the content of a users file.
	errUsers    = errors.New("bad users file")
	errUserLine = errors.New("a line must be like: user app on #<SHA-256 of the password> ~app:* +@decide +@connection")
)

// Parse reads users in the format of Redis' ACL files: a line "user <name> <rule> ..." for each. It ignores empty lines
// and lines that begin with #. It applies the rules in order. A user begins as off, without passwords, commands and
// keys:
//
//	on, off              whether the user may log in
//	#<hash>              a password, by its SHA-256 in 64 hexadecimal digits
//	nopass               any password is right
//	san:<name>           certificates with this name log the user in: a DNS name, or a URI such as spiffe://prod/app
//	~<pattern>, allkeys  keys that decisions and dry runs may name
//	+@<category>, -@<category>, +<command>, -<command>, +<command>|<subcommand>, ...
//	allcommands, nocommands
//
// &*, allchannels and sanitize-payload have no effect. Parse accepts them because every ACL LIST contains them.
func Parse(commands Commands, text []byte) (*Users, error) {
	if len(text) > MaxUsersBytes {
		return nil, fmt.Errorf("%w: it must have at most %d bytes", errUsers, MaxUsersBytes)
	}
	users, number := newUsers(), 0
	for line := range bytes.Lines(text) {
		number++
		words := strings.Fields(string(line))
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		u, err := parseUser(commands, words)
		switch {
		case err != nil:
		case users.ByName[u.Name] != nil:
			err = fmt.Errorf("user %q is defined twice", u.Name)
		case len(users.ByName) == MaxUsers:
			err = fmt.Errorf("there may be at most %d users", MaxUsers)
		default:
			err = users.certify(u)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", errUsers, number, err)
		}
		users.ByName[u.Name] = u
	}
	if len(users.ByName) == 0 {
		return nil, fmt.Errorf("%w: the file has no user; %w", errUsers, errUserLine)
	}
	return users, nil
}

func parseUser(commands Commands, words []string) (*User, error) {
	if words[0] != "user" || len(words) < 2 {
		return nil, errUserLine
	}
	u := &User{Name: words[1], Commands: make([]bool, commands.Len())}
	if len(u.Name) > maxUserBytes || strings.ContainsFunc(u.Name, func(c rune) bool { return c < '!' || c > '~' }) {
		return nil, fmt.Errorf("a user name must have at most %d characters and no special characters", maxUserBytes)
	}
	if len(words) > 2+maxUserRules {
		return nil, fmt.Errorf("user %q: at most %d rules", u.Name, maxUserRules)
	}
	for _, rule := range words[2:] {
		if err := u.apply(commands, rule); err != nil {
			return nil, fmt.Errorf("user %q: %w", u.Name, err)
		}
	}
	u.Limited = !u.AllKeys || slices.Contains(u.Commands, false)
	return u, nil
}

// apply applies one rule.
func (u *User) apply(commands Commands, rule string) error {
	switch {
	case rule == "on" || rule == "off":
		u.on = rule == "on"
		return nil
	case rule == "nopass":
		u.NoPassword = true
		return nil
	case rule[0] == '#':
		return u.addPassword(rule[1:])
	case rule[0] == '>' || rule[0] == '<':
		return errors.New("passwords must be given as #<hash>: printf %s the-password | sha256sum")
	case strings.HasPrefix(rule, certRule):
		return u.addCertName(rule)
	case rule == "sanitize-payload" || rule == "&*" || rule == "allchannels":
		return nil
	case rule == "allkeys" || rule == "~*":
		u.AllKeys = true
	case rule[0] == '~' && len(rule) <= engine.MaxKeyLen:
		u.keys = append(u.keys, []byte(rule[1:]))
	default:
		if err := u.allow(commands, rule); err != nil {
			return err
		}
	}
	u.Rules = append(u.Rules, rule)
	return nil
}

// addPassword never repeats text in an error, because it may be the password itself.
func (u *User) addPassword(text string) error {
	var hash passwordHash
	if n, err := hex.Decode(hash[:], []byte(text[:min(len(text), 2*len(hash))])); err != nil || n != len(hash) ||
		len(text) != 2*len(hash) {
		return errors.New("a password must be # and its SHA-256 in 64 hexadecimal digits")
	}
	u.passwords = append(u.passwords, hash)
	return nil
}

// allow applies a rule about commands.
func (u *User) allow(commands Commands, rule string) error {
	switch rule {
	case "allcommands":
		rule = "+@all"
	case "nocommands":
		rule = "-@all"
	}
	grant, what := rule[0] == '+', strings.ToLower(rule[1:])
	if !grant && rule[0] != '-' {
		return fmt.Errorf("rule %s must be on, off, nopass, #<hash>, san:<name>, ~<pattern>, +@<category>, "+
			"-@<category>, +<command> or -<command>", quote.Text([]byte(rule)))
	}
	named := commands.Named(what)
	if len(named) == 0 {
		return fmt.Errorf("rule %s names an unknown command or category: ACL CAT lists them", quote.Text([]byte(rule)))
	}
	for _, command := range named {
		u.Commands[command] = grant
	}
	return nil
}
