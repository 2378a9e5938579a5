package cmdline

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// These struct tags of flags restrict a value further than its Go type does. CheckValues enforces them.
const (
	AddressTag  = "address" // the value is HOST:PORT; address:"listen" marks an address of this machine
	listenTag   = "listen"
	LeastTag    = "least"    // the smallest number, duration or size
	MayEmptyTag = "mayempty" // an empty value has a meaning
)

// HowGiven returns how the user gave a flag its value: "--join", "WEIR_JOIN", or "join in the configuration file". It
// returns "" for a default.
func HowGiven(ctx *kong.Context, flag *kong.Flag) string {
	inFile := false
	for _, step := range ctx.Path {
		switch {
		case step.Flag != flag:
		case step.Resolved:
			inFile = true
		default:
			return "--" + flag.Name
		}
	}
	if inFile {
		return flag.Name + " in the configuration file"
	}
	for _, env := range flag.Envs {
		if _, ok := os.LookupEnv(env); ok {
			return env
		}
	}
	return ""
}

// CheckValues refuses values that kong accepts: empty ones, addresses without a port, and numbers below the minimum.
func CheckValues(ctx *kong.Context) (err error) {
	for _, flag := range ctx.Flags() {
		if how := HowGiven(ctx, flag); how != "" {
			err = errors.Join(err, checkValue(flag, how))
		}
	}
	return err
}

func checkValue(flag *kong.Flag, how string) error {
	value := flag.Target.Interface()
	list, _ := value.([]string)
	if value == "" || flag.IsSlice() && strings.Join(list, "") == "" {
		if flag.Tag.Has(MayEmptyTag) {
			return nil
		}
		// The usual cause is an unset shell variable.
		return fmt.Errorf("%s is empty: give it a value (%s), or leave it out",
			how, cmp.Or(flag.PlaceHolder, "like "+flag.Default))
	}
	if flag.Tag.Has(AddressTag) {
		return checkAddresses(how, value, flag.Tag.Get(AddressTag) == listenTag)
	}
	return checkLeast(flag, how)
}

// accepted describes the numbers that a flag accepts.
func accepted(flag *kong.Flag) string {
	text := cmp.Or(flag.Tag.Get(LeastTag), "0") + " or more"
	if flag.Default != "" {
		text += ", like " + flag.Default
	}
	return text
}

// checkLeast compares a number with the tag least, or with zero.
func checkLeast(flag *kong.Flag, how string) error {
	least := flag.Tag.Get(LeastTag)
	switch value := flag.Target.Interface().(type) {
	case time.Duration:
		bound, _ := time.ParseDuration(cmp.Or(least, "0s"))
		if value < bound && !flag.Hidden {
			return fmt.Errorf("%s must be %s, not %v", how, accepted(flag), value)
		}
	case ByteSize:
		var bound ByteSize
		if least != "" {
			_ = bound.UnmarshalText([]byte(least))
		}
		if value < bound {
			return fmt.Errorf("%s must be %s, not %d bytes", how, accepted(flag), value)
		}
	default:
		if !flag.Target.CanInt() {
			return nil
		}
		var bound int64
		_, _ = fmt.Sscan(cmp.Or(least, "0"), &bound)
		if n := flag.Target.Int(); n < bound {
			return fmt.Errorf("%s must be %s, not %d", how, accepted(flag), n)
		}
	}
	return nil
}

// readDuration reads the value of a duration flag.
func readDuration(ctx *kong.DecodeContext, target reflect.Value) error {
	token, err := ctx.Scan.PopValue("duration")
	if err != nil {
		return err
	}
	d, err := time.ParseDuration(fmt.Sprint(token.Value))
	if err != nil {
		return fmt.Errorf("must be like 500ms, 30s, 5m or 24h, not %q", token.Value)
	}
	target.SetInt(int64(d))
	return nil
}
