package cmdline

import (
	"fmt"
	"os"
	"strings"
)

// SecretFrom returns value, or the content of file without its line end if file is given. flag names the flag of
// value in errors, without its hyphens. Both a value and a file are an error, and so is an empty file.
func SecretFrom(flag, value, file string) (string, error) {
	if file == "" {
		return value, nil
	}
	if value != "" {
		return "", fmt.Errorf("--%s and --%s-file exclude each other: give one of them", flag, flag)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("--%s-file: %w", flag, err)
	}
	secret := strings.TrimRight(string(b), "\r\n")
	switch {
	case secret == "":
		return "", fmt.Errorf("--%s-file: %s is empty: write the secret into it, on one line", flag, file)
	case strings.ContainsAny(secret, "\r\n"):
		return "", fmt.Errorf("--%s-file: %s has more than one line: it must hold the secret and nothing else", flag,
			file)
	}
	return secret, nil
}
