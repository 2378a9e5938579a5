package commands

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
)

// redisVersion is the Redis that weir says it is to clients, which choose by it
// what they send.
const redisVersion = "7.4.0"

// newRunID returns 40 hexadecimal digits, new at every start.
func newRunID() string {
	var random [20]byte
	_, _ = rand.Read(random[:]) // never fails
	return hex.EncodeToString(random[:])
}

// infoSection is one part of INFO. extra: only in INFO all and everything.
type infoSection struct {
	name  string
	extra bool
	write func(*Shared, *infoWriter)
}

type infoWriter struct{ strings.Builder }

func (w *infoWriter) field(name string, value any) { fmt.Fprintf(w, "%s:%v\r\n", name, value) }

func (s *Shared) infoSections() []infoSection {
	sections := []infoSection{
		{"Server", false, infoServer}, {"Clients", false, infoClients}, {"Memory", false, infoMemory},
		{"Persistence", false, infoPersistence}, {"Stats", false, infoStats}, {"Replication", false, infoReplication},
		{"CPU", false, infoCPU}, {"Modules", false, func(*Shared, *infoWriter) {}},
		{"Commandstats", true, infoCommandstats}, {"Errorstats", false, infoErrorstats},
		{"Cluster", false, func(s *Shared, w *infoWriter) { w.field("cluster_enabled", oneIf(s.Replica != nil)) }},
		{"Keyspace", false, infoKeyspace}, {"Weir", false, infoWeir},
	}
	if s.Replica != nil {
		sections = append(sections, infoSection{"Raft", false, infoRaft})
	}
	return sections
}

func runInfo(s *Session, args [][]byte) {
	wanted, all := map[string]bool{}, false
	for _, a := range args[1:] {
		name := strings.ToLower(string(a))
		wanted[name] = true
		all = all || name == "all" || name == "everything"
	}
	standard := len(args) == 1 || wanted["default"]
	var w infoWriter
	for _, section := range s.srv.infoSections() {
		if !all && !wanted[strings.ToLower(section.name)] && (!standard || section.extra) {
			continue
		}
		if w.Len() > 0 {
			w.WriteString("\r\n")
		}
		w.WriteString("# " + section.name + "\r\n")
		section.write(s.srv, &w)
	}
	s.Verbatim(w.String())
}
