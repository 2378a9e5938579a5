package cmdline

import (
	"reflect"
	"time"

	"github.com/alecthomas/kong"
)

// Options returns the options of kong that all programs share.
func Options() []kong.Option {
	return []kong.Option{
		kong.DefaultEnvars(EnvPrefix),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(readDuration)),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	}
}
