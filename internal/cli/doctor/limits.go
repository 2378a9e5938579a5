package doctor

import (
	"fmt"
	"strconv"

	"github.com/weir-project/weir/internal/cli/cmdline"
	"github.com/weir-project/weir/internal/cli/listener"
)

// memoryRoomPercent is the part of the machine's memory that the bound on limiters may take. The rest is for
// connections, for saving and for the system.
const memoryRoomPercent = 85

// lookAtLimits compares the configured limits with the limits of the process.
func (d *Subject) lookAtLimits(up *running) []Finding {
	return []Finding{d.lookAtFiles(up), d.judgeMemory(d.MachineMemory, up)}
}

func (d *Subject) lookAtFiles(up *running) Finding {
	if up != nil {
		if most, _ := strconv.Atoi(up.info["maxclients"]); most < d.MaxClients {
			return Finding{Doubt, "limits", fmt.Sprintf("the server accepts %d clients, but --max-clients is %d", most,
				d.MaxClients), "raise its limit on file descriptors: LimitNOFILE, ulimit -n"}
		}
		return Finding{Fine, "limits", "the server accepts " + up.info["maxclients"] + " clients, " +
			up.info["connected_clients"] + " are connected", ""}
	}
	files, err := d.FileLimit()
	if err != nil {
		return Finding{Doubt, "limits", "the limit on file descriptors: " + err.Error(), "see ulimit -n"}
	}
	return judgeFiles(files, d.BesidesClients, d.MaxClients)
}

func judgeFiles(files, besides uint64, clients int) Finding {
	room, err := listener.MaxClients(files, besides)
	said := fmt.Sprintf("%d file descriptors are enough for %d clients", files, room)
	switch {
	case err != nil:
		return Finding{Wrong, "limits", oneLine(err), "raise it: LimitNOFILE, ulimit -n"}
	case room < clients:
		return Finding{Doubt, "limits", fmt.Sprintf("%s, --max-clients is %d", said, clients),
			fmt.Sprintf("raise the limit to %d: LimitNOFILE, ulimit -n", uint64(clients)+besides)}
	}
	return Finding{Fine, "limits", fmt.Sprintf("%s, --max-clients is %d", said, clients), ""}
}

// judgeMemory compares the bound on limiters with the memory of the machine, in bytes.
func (d *Subject) judgeMemory(machine int64, up *running) Finding {
	bound := d.MemoryBound(machine)
	if up != nil {
		if asked := bound; asked != up.number("maxmemory") {
			return Finding{Doubt, "limits", "the server runs with another --max-memory, " +
				cmdline.BytesText(uint64(up.number("maxmemory"))),
				"give doctor the server's flags, or restart the server"}
		}
		if used := up.number("used_memory_dataset"); bound > 0 && used > bound/8*7 {
			return Finding{Doubt, "limits", fmt.Sprintf("limiters take %s of %s", cmdline.BytesText(uint64(used)),
				cmdline.BytesText(uint64(bound))),
				"raise --max-memory: the server evicts limiters, or refuses new ones"}
		}
	}
	said := fmt.Sprintf("limiters may take %s of %s", cmdline.BytesText(uint64(bound)),
		cmdline.BytesText(uint64(machine)))
	switch {
	case bound == 0:
		return Finding{Doubt, "limits", "the memory of limiters has no bound",
			"set --max-memory: with a flood of invented keys the system would kill the process"}
	case machine > 0 && bound/memoryRoomPercent > machine/100:
		return Finding{Doubt, "limits", said, "lower --max-memory: connections and saving need the rest of the memory"}
	}
	return Finding{Fine, "limits", said, ""}
}

// number returns a field of INFO, or 0 if the field is missing.
func (r *running) number(field string) int64 {
	n, _ := strconv.ParseInt(r.info[field], 10, 64)
	return n
}
