package info

import (
	"fmt"
	"strings"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/service"
)

// RedisVersion is the version of Redis that the server reports. Clients select their commands by it.
const RedisVersion = "7.4.0"

// Server is what INFO reads. The caller fills in all fields besides Service for each reply.
type Server struct {
	*service.Service
	RunID              string // 40 hexadecimal digits, new at every start
	Port               string
	LastSave           int64 // in Unix time
	Saving, SaveFailed bool
	Subscribed         func() int // clients with subscriptions
	// Expiring are the keys of each database that expire, which are all of limiters.
	Expiring [engine.Databases]int64
	Lasting  int32 // keys of database 0 that do not
}

// section is one part of INFO. An extra section is shown only by its name, and by INFO all and everything.
type section struct {
	name  string
	extra bool
	write func(*Server, *writer)
}

type writer struct{ strings.Builder }

func (w *writer) field(name string, value any) { fmt.Fprintf(w, "%s:%v\r\n", name, value) }

func (w *writer) flag(name string, on bool) {
	value := 0
	if on {
		value = 1
	}
	w.field(name, value)
}

func (s *Server) sections() []section {
	sections := []section{
		{"Server", false, writeServer}, {"Clients", false, writeClients}, {"Memory", false, writeMemory},
		{"Persistence", false, writePersistence}, {"Stats", false, writeStats},
		{"Replication", false, writeReplication},
		{"CPU", false, writeCPU}, {"Modules", false, func(*Server, *writer) {}},
		{"Commandstats", true, writeCommandstats}, {"Errorstats", false, writeErrorstats},
		{"Cluster", false, func(s *Server, w *writer) { w.flag("cluster_enabled", s.Replica != nil) }},
		{"Keyspace", false, writeKeyspace}, {"Weir", false, writeWeir},
	}
	if s.Replica != nil {
		sections = append(sections, section{"Raft", false, writeRaft})
	}
	return sections
}

// Text returns the sections with the given names, ignoring case. Without names it returns the standard sections.
func (s *Server) Text(names [][]byte) string {
	wanted, all := map[string]bool{}, false
	for _, n := range names {
		name := strings.ToLower(string(n))
		wanted[name] = true
		all = all || name == "all" || name == "everything"
	}
	standard := len(names) == 0 || wanted["default"]
	var w writer
	for _, section := range s.sections() {
		if !all && !wanted[strings.ToLower(section.name)] && (!standard || section.extra) {
			continue
		}
		if w.Len() > 0 {
			w.WriteString("\r\n")
		}
		w.WriteString("# " + section.name + "\r\n")
		section.write(s, &w)
	}
	return w.String()
}
