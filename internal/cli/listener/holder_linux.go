package listener

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// listenerOn returns the process that listens on a TCP port of this machine, and its id. It returns 0 for processes of
// other users, which /proc does not show.
func listenerOn(port string) (name string, pid int) {
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return "", 0
	}
	sockets := slices.Concat(listeningSockets("/proc/net/tcp", number), listeningSockets("/proc/net/tcp6", number))
	if len(sockets) == 0 {
		return "", 0
	}
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*") // the pattern is valid
	for _, file := range files {
		if to, err := os.Readlink(file); err != nil || !slices.Contains(sockets, to) {
			continue
		}
		process := filepath.Dir(filepath.Dir(file))
		pid, _ = strconv.Atoi(filepath.Base(process))
		text, _ := os.ReadFile(filepath.Join(process, "comm"))
		return strings.TrimSpace(string(text)), pid
	}
	return "", 0
}

// The columns of a line of /proc/net/tcp, and the state of a socket that listens.
const (
	tcpLocal, tcpState, tcpInode = 1, 3, 9
	tcpListening                 = "0A"
)

// listeningSockets returns the sockets that listen on a port, by their names in the links of /proc/PID/fd.
func listeningSockets(table string, port uint64) (names []string) {
	text, err := os.ReadFile(table)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		columns := strings.Fields(line)
		if len(columns) <= tcpInode || columns[tcpState] != tcpListening {
			continue
		}
		_, local, _ := strings.Cut(columns[tcpLocal], ":")
		if at, err := strconv.ParseUint(local, 16, 16); err == nil && at == port {
			names = append(names, "socket:["+columns[tcpInode]+"]")
		}
	}
	return names
}
