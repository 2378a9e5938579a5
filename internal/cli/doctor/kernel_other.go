//go:build !linux

package doctor

import "errors"

// clockDiscipline reports nothing, because other systems do not show all fields to any user.
func clockDiscipline() (discipline, bool) { return discipline{}, false }

// volumeOf is implemented for Linux only.
func volumeOf(string) (volume, error) {
	return volume{}, errors.New("what is free cannot be seen on this system")
}
