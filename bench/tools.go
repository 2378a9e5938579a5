package bench

import (
	"fmt"
	"os"
	"os/exec"
)

// Tools are the programs that a run can start. A missing program is empty.
type Tools struct {
	Weir           string
	Base           string // another revision of weir
	RedisServer    string // or Valkey's
	RedisBenchmark string
	RedisCell      string // the module's file
	ThrottleCrab   string
	Valkey         string // measured beside RedisServer
}

const redisHint = "install Redis 7: apt-get install redis-server redis-tools (Debian, Ubuntu), " +
	"dnf install redis (Fedora) or brew install redis (macOS)"

// FindTools looks for programs in PATH, and for modules in the directories of packages.
func FindTools(weir string) Tools {
	return Tools{
		Weir:           weir,
		RedisServer:    firstProgram("redis-server", "valkey-server"),
		RedisBenchmark: firstProgram("redis-benchmark", "valkey-benchmark"),
		RedisCell:      firstFile("/usr/lib/redis/modules/libredis_cell.so", "/usr/local/lib/libredis_cell.so"),
		ThrottleCrab:   firstProgram("throttlecrab-server", "throttlecrab"),
	}
}

func firstProgram(names ...string) string {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

func firstFile(paths ...string) string {
	for _, path := range paths {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}

const rivalsHint = "make bench-rivals fetches or builds it"

func missing(name, hint string) error {
	return fmt.Errorf("%s %w; %s", name, ErrToolMissing, hint)
}
