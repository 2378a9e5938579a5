package servers

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	redigo "github.com/gomodule/redigo/redis"
)

const (
	DialTimeout = 5 * time.Second
	// ReplyTimeout also covers a save of all changes of a cell.
	ReplyTimeout = time.Minute
)

// Dial connects to a server.
func Dial(addr string) (redigo.Conn, error) {
	return redigo.Dial("tcp", addr,
		redigo.DialConnectTimeout(DialTimeout),
		redigo.DialReadTimeout(ReplyTimeout),
		redigo.DialWriteTimeout(ReplyTimeout))
}

// Do sends one request and returns its reply. It returns an error reply as an error.
func Do(conn redigo.Conn, request ...string) (any, error) {
	args := make([]any, len(request)-1)
	for i := range args {
		args[i] = request[i+1]
	}
	return conn.Do(request[0], args...)
}

// AskAll sends one request to every address, one after the other. In parallel the servers would only wait for the same
// disk.
func AskAll(addrs []string, request ...string) error {
	for _, addr := range addrs {
		if err := AskOnce(addr, request...); err != nil {
			return fmt.Errorf("%s: %w", addr, err)
		}
	}
	return nil
}

// AskTogether sends one request to every address at once.
func AskTogether(addrs []string, request ...string) error {
	errs := make([]error, len(addrs))
	var all sync.WaitGroup
	for i, addr := range addrs {
		all.Go(func() { errs[i] = AskOnce(addr, request...) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// AskOnce sends one request on a new connection.
func AskOnce(addr string, request ...string) error {
	conn, err := Dial(addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = Do(conn, request...)
	return err
}

// pinged returns why a server does not answer.
func pinged(addr string) error { return AskOnce(addr, "PING") }

// serverInfo returns the fields of a section of a server's INFO.
func serverInfo(addr, section string) (map[string]string, error) {
	conn, err := Dial(addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	text, err := redigo.String(Do(conn, "INFO", section))
	if err != nil {
		return nil, err
	}
	fields := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields, nil
}

// VersionAt returns the name and version of the server at an address. weir also reports a Redis version, so its own
// name takes precedence.
func VersionAt(addr string) (string, error) {
	info, err := serverInfo(addr, "server")
	if err != nil {
		return "", err
	}
	for _, name := range []string{"weir", "valkey", "redis"} {
		if version, ok := info[name+"_version"]; ok {
			return name + " " + version, nil
		}
	}
	return "unknown", nil
}
