package rule

// Databases is the number of databases, which number them from 0. Clients of different databases may use one key for
// different limiters.
const Databases = 16

// A key of database 0 is stored as it is. The stored key of any other database begins with a mark:
//
//	NUL "db" <number of the database, one hexadecimal digit> "|" <key>
//
// The bar makes a block everywhere of the key apply to the stored key, too. The name of a policy's limiter has the
// stored key.
const databaseMark = "\x00db"

// DatabaseLen is the length of the mark of a stored key.
const DatabaseLen = len(databaseMark) + len("1|")

const databaseDigits = "0123456789abcdef"

// CutDatabase returns the database of a stored key, and the key without the mark. A key without a mark is of
// database 0.
func CutDatabase(key []byte) (database int, rest []byte) {
	if len(key) == 0 || key[0] != databaseMark[0] {
		return 0, key
	}
	return cutMark(key)
}

func cutMark(key []byte) (database int, rest []byte) {
	if len(key) <= DatabaseLen || string(key[:len(databaseMark)]) != databaseMark || key[DatabaseLen-1] != '|' {
		return 0, key
	}
	for n := 1; n < Databases; n++ {
		if key[len(databaseMark)] == databaseDigits[n] {
			return n, key[DatabaseLen:]
		}
	}
	return 0, key
}

// AppendMark appends the mark of a database, which is none for database 0.
func AppendMark(to []byte, database int) []byte {
	if database == 0 {
		return to
	}
	return append(append(to, databaseMark...), databaseDigits[database], '|')
}

// DatabaseOf returns the database of a stored key, or of the key in the name of a policy's limiter.
func DatabaseOf(name []byte) int {
	if Reserved(name) {
		if _, _, key, ok := SplitName(name); ok {
			name = key
		}
	}
	database, _ := CutDatabase(name)
	return database
}
