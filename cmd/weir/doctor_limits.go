package main

import (
	"fmt"
	"os"
	"strconv"

	"github.com/weir-project/weir/internal/cli/cmdline"
)

// memoryRoomPercent of the machine's memory may be the bound on limiters: the rest is
// for connections, for saving and for the system.
const memoryRoomPercent = 85

// lookAtLimits compares what is asked for with what the process may have.
func (d *doctorCmd) lookAtLimits(up *running) []finding {
	return []finding{d.lookAtFiles(up), d.judgeMemory(machineMemory(os.DirFS("/")), up)}
}

func (d *doctorCmd) lookAtFiles(up *running) finding {
	if up != nil {
		if most, _ := strconv.Atoi(up.info["maxclients"]); most < d.MaxClients {
			return finding{doubt, "limits", fmt.Sprintf("the server takes %d clients, --max-clients is %d", most, d.MaxClients), "raise its limit on file descriptors: LimitNOFILE, ulimit -n"}
		}
		return finding{fine, "limits", "the server takes " + up.info["maxclients"] + " clients, " + up.info["connected_clients"] + " are connected", ""}
	}
	files, err := fileLimit()
	if err != nil {
		return finding{doubt, "limits", "the limit on file descriptors: " + err.Error(), "see ulimit -n"}
	}
	return judgeFiles(files, d.besidesClients(), d.MaxClients)
}

func judgeFiles(files, besides uint64, clients int) finding {
	room, err := clientRoom(files, besides)
	said := fmt.Sprintf("%d file descriptors have room for %d clients", files, room)
	switch {
	case err != nil:
		return finding{wrong, "limits", oneLine(err), "raise it: LimitNOFILE, ulimit -n"}
	case room < clients:
		return finding{doubt, "limits", fmt.Sprintf("%s, --max-clients is %d", said, clients), fmt.Sprintf("raise the limit to %d: LimitNOFILE, ulimit -n", uint64(clients)+besides)}
	}
	return finding{fine, "limits", fmt.Sprintf("%s, --max-clients is %d", said, clients), ""}
}

// judgeMemory holds the bound on limiters against the memory there is, in bytes.
func (d *doctorCmd) judgeMemory(machine int64, up *running) finding {
	bound := d.MaxMemory.resolve(machine)
	if up != nil {
		if asked := bound; asked != up.number("maxmemory") {
			return finding{doubt, "limits", "the server was started with another --max-memory, " + cmdline.BytesText(uint64(up.number("maxmemory"))), "give doctor its flags, or restart it"}
		}
		if used := up.number("used_memory_dataset"); bound > 0 && used > bound/8*7 {
			return finding{doubt, "limits", fmt.Sprintf("limiters take %s of %s", cmdline.BytesText(uint64(used)), cmdline.BytesText(uint64(bound))), "raise --max-memory: limiters are evicted, or new ones refused"}
		}
	}
	said := fmt.Sprintf("limiters may take %s of %s", cmdline.BytesText(uint64(bound)), cmdline.BytesText(uint64(machine)))
	switch {
	case bound == 0:
		return finding{doubt, "limits", "the memory of limiters has no bound", "set --max-memory: a flood of invented keys would end with the process killed"}
	case machine > 0 && bound/memoryRoomPercent > machine/100:
		return finding{doubt, "limits", said, "lower --max-memory: connections and saving need the rest"}
	}
	return finding{fine, "limits", said, ""}
}

// number reads a field of INFO; 0 where there is none.
func (r *running) number(field string) int64 {
	n, _ := strconv.ParseInt(r.info[field], 10, 64)
	return n
}
