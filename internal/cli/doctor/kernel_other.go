//go:build !linux

package doctor

import "errors"

// clockDiscipline reports nothing, because other systems do not show all fields to any user.
func clockDiscipline() (discipline, bool) { return discipline{}, false }

// volumeOf is implemented for Linux only.
func volumeOf(string) (volume, error) {
	return volume{}, errors.New("this system does not report the free space")
}
