package resp

// Error is an error reply as the client reads it: a word in capitals, by which programs distinguish errors, and a text
// for people.
type Error string

func (e Error) Error() string { return string(e) }
