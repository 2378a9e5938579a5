//go:build !linux

package doctor

import "errors"

// clockDiscipline: other systems do not tell all of it to any user.
func clockDiscipline() (discipline, bool) { return discipline{}, false }

// volumeOf is for Linux only.
func volumeOf(string) (volume, error) {
	return volume{}, errors.New("what is free cannot be seen on this system")
}
