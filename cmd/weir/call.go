package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/gomodule/redigo/redis"

	"github.com/weir-project/weir/internal/cli/cmdline"
	"github.com/weir-project/weir/internal/cli/remote"
	"github.com/weir-project/weir/internal/cli/terminal"
)

// callCmd sends one command, for places without another client: an image that contains only weir, or a machine with
// only Go.
type callCmd struct {
	remote.Server   `embed:""`
	remote.Database `embed:""`
	Command         []string `arg:"" passthrough:"" help:"The command and its arguments, like RL.TOKENBUCKET user:42 5/m 3. Flags stand before it."`
}

// Run prints the reply as redis-cli does. An error reply is the error of Run.
func (c *callCmd) Run() error {
	password, err := cmdline.SecretFrom("password", "", c.PasswordFile)
	if err != nil {
		return err
	}
	c.Select(&c.Flags)
	conn, err := c.Dial(c.Addr, password)
	if err != nil {
		return err
	}
	defer conn.Close()
	reply, err := conn.Do(c.Command[0], remote.Args(c.Command[1:])...)
	if err != nil {
		return err
	}
	return writeReply(os.Stdout, reply, "")
}

// writeReply writes a reply. It writes the elements of an array on separate lines with their numbers.
func writeReply(w io.Writer, reply any, indent string) error {
	switch r := reply.(type) {
	case nil:
		return writeLine(w, "(nil)")
	case int64:
		return writeLine(w, fmt.Sprintf("(integer) %d", r))
	case []byte:
		return writeLine(w, fmt.Sprintf("%q", r))
	case redis.Error:
		return writeLine(w, "(error) "+terminal.PlainText(string(r)))
	case []any:
		return writeElements(w, r, indent)
	}
	return writeLine(w, terminal.PlainText(fmt.Sprint(reply)))
}

func writeElements(w io.Writer, all []any, indent string) error {
	if len(all) == 0 {
		return writeLine(w, "(empty array)")
	}
	width := len(fmt.Sprint(len(all)))
	for i, element := range all {
		before := indent
		if i == 0 {
			before = "" // the first element follows the number of its array
		}
		if _, err := fmt.Fprintf(w, "%s%*d) ", before, width, i+1); err != nil {
			return err
		}
		if err := writeReply(w, element, indent+strings.Repeat(" ", width+2)); err != nil {
			return err
		}
	}
	return nil
}

func writeLine(w io.Writer, line string) error {
	_, err := io.WriteString(w, line+"\n")
	return err
}
