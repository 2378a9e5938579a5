package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/weir-project/weir/engine"
)

// defaultUser is who a client is that names no user.
const defaultUser = "default"

// passwordHash is how a password is known: its SHA-256, as in Redis. A slow hash would
// protect a guessable password in a stolen file, and let anybody who can connect spend
// a tenth of a second of processor for a few bytes. So passwords are to be long and
// random, which ACL GENPASS makes; guesses over the wire are held back by failedLogins.
type passwordHash [sha256.Size]byte

// user is somebody who may log in, and what he may do. It does not change.
type user struct {
	name      string
	on        bool
	nopass    bool // any password is right
	passwords []passwordHash

	commands []bool // by their numbers
	keys     [][]byte
	allKeys  bool
	limited  bool     // there is something that he may not do
	rules    []string // as ACL LIST shows them; passwords are not among them
}

// Users are all who may log in. They do not change: a server is given others.
type Users struct{ byName map[string]*user }

// commandSet is what rules know of commands, which have numbers from 0 on.
type commandSet interface {
	// Len is how many there are.
	Len() int
	// Named returns the numbers of the commands that a rule names: those of a category, like
	// "@read", or one command with its subcommands, like "client" or "client|list"; none: it
	// names nothing.
	Named(rule string) []int
}

// errTwoPasswords: both would be the default user's.
var errTwoPasswords = errors.New("the users file says who the user default is, and a password for it is given beside")

// usersOf completes the users of a file, nil: there is none, with the user default. Its
// password is the one given. Without one it is anybody where there are no other users,
// and nobody where there are: who names users wants to be told names.
func usersOf(file *Users, password string) (*Users, error) {
	users := &Users{byName: make(map[string]*user)}
	if file != nil {
		maps.Copy(users.byName, file.byName)
	}
	if users.byName[defaultUser] != nil {
		if password != "" {
			return nil, errTwoPasswords
		}
		return users, nil
	}
	u := &user{name: defaultUser, on: password != "" || file == nil, nopass: password == "", allKeys: true, rules: []string{"~*", "&*", "+@all"}}
	if !u.nopass {
		u.passwords = []passwordHash{sha256.Sum256([]byte(password))}
	}
	users.byName[defaultUser] = u
	return users, nil
}

// open says whether a client needs no login: it is the user default at once.
func (u *Users) open() bool { d := u.byName[defaultUser]; return d.on && d.nopass }

// get returns the user with this name, or nil.
func (u *Users) get(name string) *user { return u.byName[name] }

// list returns all in the order of their names.
func (u *Users) list() []*user {
	all := make([]*user, 0, len(u.byName))
	for _, name := range slices.Sorted(maps.Keys(u.byName)) {
		all = append(all, u.byName[name])
	}
	return all
}

// nobody stands in for a user that there is not, so that finding out takes as long as
// a wrong password.
var nobody = &user{passwords: make([]passwordHash, 1)}

// login returns the user with this name and password, or nil.
func (u *Users) login(name, password []byte) *user {
	found := u.byName[string(name)]
	if found == nil {
		found = nobody
	}
	if right := found.has(password); !right || !found.on {
		return nil
	}
	return found
}

// has compares digests, and all of them, so that the time it takes says nothing about
// the password, not even its length.
func (u *user) has(password []byte) bool {
	given, right := sha256.Sum256(password), 0
	for i := range u.passwords {
		right |= subtle.ConstantTimeCompare(u.passwords[i][:], given[:])
	}
	return right == 1 || u.nopass
}

// mayCall says whether the user may send the command with this number.
func (u *user) mayCall(command int) bool { return u.commands[command] }

// mayUse says whether the user may use a key.
func (u *user) mayUse(key []byte) bool {
	return u.allKeys || slices.ContainsFunc(u.keys, func(pattern []byte) bool { return engine.MatchGlob(pattern, key) })
}

// mayUseAll says whether the user may use all of some keys.
func (u *user) mayUseAll(keys [][]byte) bool {
	return !slices.ContainsFunc(keys, func(key []byte) bool { return !u.mayUse(key) })
}

// mayDecide says whether the user may use every key of these operations. The id of a
// hold counts as one: who may settle it must be one who might have made it. A block
// everywhere is one of keys that it does not name.
func (u *user) mayDecide(ops []engine.Op) bool {
	for i := range ops {
		if names := ownNamesOf(&ops[i]); names != nil {
			if !u.mayUseAll(names) {
				return false
			}
			continue
		}
		if !u.mayUse(ops[i].Key) || ops[i].Code == engine.OpBlockEverywhere && !u.allKeys || ops[i].Code == engine.OpReserve && !u.mayUse(ops[i].ID) || slices.ContainsFunc(ops[i].Also, func(p engine.Pair) bool { return !u.mayUse(p.Key) }) {
			return false
		}
	}
	return true
}

// same says whether nothing has changed for those who are logged in.
func (u *user) same(other *user) bool {
	return other != nil && u.on == other.on && u.nopass == other.nopass && slices.Equal(u.passwords, other.passwords) &&
		slices.Equal(u.rules, other.rules)
}

// flags are the words of a user that say whether it may log in.
func (u *user) flags() []string {
	flags := []string{"off"}
	if u.on {
		flags[0] = "on"
	}
	if u.nopass {
		flags = append(flags, "nopass")
	}
	return append(flags, "sanitize-payload")
}

// rulesOn returns the rules about keys, or about commands.
func (u *user) rulesOn(keys bool) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(u.rules), func(rule string) bool {
		return rule[0] == '&' || keys != (rule[0] == '~' || rule == "allkeys")
	}), " ")
}
