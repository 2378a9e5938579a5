package acl

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/weir-project/weir/engine"
)

// DefaultUser is who a client is that names no user.
const DefaultUser = "default"

// passwordHash is how a password is known: its SHA-256, as in Redis. A slow hash would
// protect a guessable password in a stolen file, and let anybody who can connect spend
// a tenth of a second of processor for a few bytes. So passwords are to be long and
// random, which ACL GENPASS makes; guesses over the wire are held back by FailedLogins.
type passwordHash [sha256.Size]byte

// User is somebody who may log in, and what he may do. It does not change.
type User struct {
	Name       string
	on         bool
	NoPassword bool // any password is right
	passwords  []passwordHash

	Commands []bool // by their numbers
	keys     [][]byte
	AllKeys  bool
	Limited  bool     // there is something that he may not do
	Rules    []string // as ACL LIST shows them; passwords are not among them
}

// Users are all who may log in. They do not change: a server is given others.
type Users struct{ ByName map[string]*User }

// Commands is what rules know of commands, which have numbers from 0 on.
type Commands interface {
	// Len is how many there are.
	Len() int
	// Named returns the numbers of the commands that a rule names: those of a category, like
	// "@read", or one command with its subcommands, like "client" or "client|list"; none: it
	// names nothing.
	Named(rule string) []int
}

// ErrTwoPasswords: both would be the default user's.
var ErrTwoPasswords = errors.New("the users file says who the user default is, and a password for it is given beside")

// WithDefault completes the users of a file, nil: there is none, with the user default. Its
// password is the one given. Without one it is anybody where there are no other users,
// and nobody where there are: who names users wants to be told names.
func WithDefault(file *Users, password string) (*Users, error) {
	users := &Users{ByName: make(map[string]*User)}
	if file != nil {
		maps.Copy(users.ByName, file.ByName)
	}
	if users.ByName[DefaultUser] != nil {
		if password != "" {
			return nil, ErrTwoPasswords
		}
		return users, nil
	}
	u := &User{Name: DefaultUser, on: password != "" || file == nil, NoPassword: password == "", AllKeys: true, Rules: []string{"~*", "&*", "+@all"}}
	if !u.NoPassword {
		u.passwords = []passwordHash{sha256.Sum256([]byte(password))}
	}
	users.ByName[DefaultUser] = u
	return users, nil
}

// Open says whether a client needs no login: it is the user default at once.
func (u *Users) Open() bool { d := u.ByName[DefaultUser]; return d.on && d.NoPassword }

// Get returns the user with this name, or nil.
func (u *Users) Get(name string) *User { return u.ByName[name] }

// List returns all in the order of their names.
func (u *Users) List() []*User {
	all := make([]*User, 0, len(u.ByName))
	for _, name := range slices.Sorted(maps.Keys(u.ByName)) {
		all = append(all, u.ByName[name])
	}
	return all
}

// nobody stands in for a user that there is not, so that finding out takes as long as
// a wrong password.
var nobody = &User{passwords: make([]passwordHash, 1)}

// Login returns the user with this name and password, or nil.
func (u *Users) Login(name, password []byte) *User {
	found := u.ByName[string(name)]
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
func (u *User) has(password []byte) bool {
	given, right := sha256.Sum256(password), 0
	for i := range u.passwords {
		right |= subtle.ConstantTimeCompare(u.passwords[i][:], given[:])
	}
	return right == 1 || u.NoPassword
}

// MayCall says whether the user may send the command with this number.
func (u *User) MayCall(command int) bool { return u.Commands[command] }

// MayUse says whether the user may use a key.
func (u *User) MayUse(key []byte) bool {
	return u.AllKeys || slices.ContainsFunc(u.keys, func(pattern []byte) bool { return engine.MatchGlob(pattern, key) })
}

// mayUseAll says whether the user may use all of some keys.
func (u *User) mayUseAll(keys [][]byte) bool {
	return !slices.ContainsFunc(keys, func(key []byte) bool { return !u.MayUse(key) })
}

// MayDecide says whether the user may use every key of these operations. The id of a
// hold counts as one: who may settle it must be one who might have made it. A block
// everywhere is one of keys that it does not name.
func (u *User) MayDecide(ops []engine.Op) bool {
	for i := range ops {
		if names := ownNamesOf(&ops[i]); names != nil {
			if !u.mayUseAll(names) {
				return false
			}
			continue
		}
		if !u.MayUse(ops[i].Key) || ops[i].Code == engine.OpBlockEverywhere && !u.AllKeys || ops[i].Code == engine.OpReserve && !u.MayUse(ops[i].ID) || slices.ContainsFunc(ops[i].Also, func(p engine.Pair) bool { return !u.MayUse(p.Key) }) {
			return false
		}
	}
	return true
}

// Same says whether nothing has changed for those who are logged in.
func (u *User) Same(other *User) bool {
	return other != nil && u.on == other.on && u.NoPassword == other.NoPassword && slices.Equal(u.passwords, other.passwords) &&
		slices.Equal(u.Rules, other.Rules)
}

// Flags are the words of a user that say whether it may log in.
func (u *User) Flags() []string {
	flags := []string{"off"}
	if u.on {
		flags[0] = "on"
	}
	if u.NoPassword {
		flags = append(flags, "nopass")
	}
	return append(flags, "sanitize-payload")
}

// RulesOn returns the rules about keys, or about commands.
func (u *User) RulesOn(keys bool) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(u.Rules), func(rule string) bool {
		return rule[0] == '&' || keys != (rule[0] == '~' || rule == "allkeys")
	}), " ")
}
