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

// DefaultUser is the user of a client that has not named another.
const DefaultUser = "default"

// passwordHash is the SHA-256 of a password, as in Redis. A slow hash would protect a guessable password in a stolen
// file. But any client could then spend a tenth of a second of processor time with a few bytes. Passwords must
// therefore be long and random, as ACL GENPASS makes them, and FailedLogins delays guesses.
type passwordHash [sha256.Size]byte

// User is a user and its permissions. It is immutable.
type User struct {
	Name       string
	on         bool
	NoPassword bool // any password is right
	passwords  []passwordHash
	certNames  []string // as OfCertificate compares them

	Commands []bool // by command number
	keys     [][]byte
	AllKeys  bool
	Limited  bool     // some command or key is forbidden
	Rules    []string // as ACL LIST shows them, without passwords
}

// Users is the set of all users. It is immutable.
type Users struct {
	ByName map[string]*User
	byCert map[string]*User // by a name in their certificates
}

func newUsers() *Users { return &Users{ByName: make(map[string]*User), byCert: make(map[string]*User)} }

// Commands is the part of the command table that rules need. Commands have numbers from 0.
type Commands interface {
	// Len returns the number of commands.
	Len() int
	// Named returns the numbers of the commands that a rule names. A rule names a category, like "@read", or one
	// command with its subcommands, like "client" or "client|list". Named returns none for an unknown name.
	Named(rule string) []int
}

// ErrTwoPasswords: the users file defines the user default, and its password is also given separately.
var ErrTwoPasswords = errors.New(
	"the users file defines the user default, so a password for it must not be given by flag")

// WithDefault adds the user default to the users of a file, which may be nil. The given password is its password.
// Without a password and a file, default needs no login. Without a password but with a file, default is off, because an
// operator who defines users wants clients to name one.
func WithDefault(file *Users, password string) (*Users, error) {
	users := newUsers()
	if file != nil {
		maps.Copy(users.ByName, file.ByName)
		users.byCert = file.byCert
	}
	if users.ByName[DefaultUser] != nil {
		if password != "" {
			return nil, ErrTwoPasswords
		}
		return users, nil
	}
	u := &User{Name: DefaultUser, on: password != "" || file == nil, NoPassword: password == "", AllKeys: true,
		Rules: []string{"~*", "&*", "+@all"}}
	if !u.NoPassword {
		u.passwords = []passwordHash{sha256.Sum256([]byte(password))}
	}
	users.ByName[DefaultUser] = u
	return users, nil
}

// Open reports whether clients need no login, because they are the user default at once.
func (u *Users) Open() bool { d := u.ByName[DefaultUser]; return d.on && d.NoPassword }

// Get returns the user with this name, or nil.
func (u *Users) Get(name string) *User { return u.ByName[name] }

// List returns all users in order of their names.
func (u *Users) List() []*User {
	all := make([]*User, 0, len(u.ByName))
	for _, name := range slices.Sorted(maps.Keys(u.ByName)) {
		all = append(all, u.ByName[name])
	}
	return all
}

// nobody replaces an unknown user, so that an unknown name takes as long as a wrong password.
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

// has compares digests, and always all of them, so that its duration reveals nothing about the password or its length.
func (u *User) has(password []byte) bool {
	given, right := sha256.Sum256(password), 0
	for i := range u.passwords {
		right |= subtle.ConstantTimeCompare(u.passwords[i][:], given[:])
	}
	return right == 1 || u.NoPassword
}

// MayCall reports whether the user may send the command with this number.
func (u *User) MayCall(command int) bool { return u.Commands[command] }

// MayUse reports whether the user may use a key.
func (u *User) MayUse(key []byte) bool {
	return u.AllKeys || slices.ContainsFunc(u.keys, func(pattern []byte) bool { return engine.MatchGlob(pattern, key) })
}

// mayUseAll reports whether the user may use all of the keys.
func (u *User) mayUseAll(keys [][]byte) bool {
	return !slices.ContainsFunc(keys, func(key []byte) bool { return !u.MayUse(key) })
}

// MayDecide reports whether the user may use every key of the operations. An operation that reaches limiters under
// other names requires these names instead (ownNamesOf). An OpReserve also requires the id of its hold. OpExtend,
// OpCommit and OpCancel have this id as their key, so the key patterns of a user also select the holds that the user
// may end. A block EVERYWHERE affects keys that it does not name, so it requires all keys.
func (u *User) MayDecide(ops []engine.Op) bool {
	for i := range ops {
		if names := ownNamesOf(&ops[i]); names != nil {
			if !u.mayUseAll(names) {
				return false
			}
			continue
		}
		if !u.MayUse(ops[i].Key) || ops[i].Code == engine.OpBlockEverywhere && !u.AllKeys ||
			ops[i].Code == engine.OpReserve && !u.MayUse(ops[i].ID) ||
			slices.ContainsFunc(ops[i].Also, func(p engine.Pair) bool { return !u.MayUse(p.Key) }) {
			return false
		}
	}
	return true
}

// Same reports whether a client that is logged in as u may stay logged in after other has replaced u: the state, the
// passwords and the permissions are equal.
func (u *User) Same(other *User) bool {
	return other != nil && u.on == other.on && u.NoPassword == other.NoPassword &&
		slices.Equal(u.passwords, other.passwords) &&
		slices.Equal(u.Rules, other.Rules)
}

// Flags returns the flags that ACL LIST and ACL GETUSER show: on or off, nopass, and the constant sanitize-payload.
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

// RulesOn returns the rules about keys, or without keys the rules about commands.
func (u *User) RulesOn(keys bool) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(u.Rules), func(rule string) bool {
		return rule[0] == '&' || strings.HasPrefix(rule, certRule) || keys != (rule[0] == '~' || rule == "allkeys")
	}), " ")
}
