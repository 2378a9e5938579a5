package bench

import (
	"fmt"
	"os/exec"
)

// Tools are the programs a run needs beside weir.
type Tools struct {
	RedisServer    string
	RedisBenchmark string
}

// FindTools looks for the programs in PATH. Its error says how to install what is
// missing.
func FindTools() (Tools, error) {
	server, err := findTool("redis-server")
	if err != nil {
		return Tools{}, err
	}
	benchmark, err := findTool("redis-benchmark")
	return Tools{RedisServer: server, RedisBenchmark: benchmark}, err
}

func findTool(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s %w; install Redis 7: apt-get install redis-server redis-tools (Debian, Ubuntu), "+
			"dnf install redis (Fedora) or brew install redis (macOS)", name, ErrToolMissing)
	}
	return path, nil
}
