package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"text/tabwriter"

	"github.com/weir-project/weir/bench"
)

// benchLoad changes the load of every chosen scenario. A flag that is not given changes nothing.
type benchLoad struct {
	Connections  int     `env:"-" help:"Connections."`
	Pipeline     int     `env:"-" help:"Requests sent together on a connection."`
	Keys         int     `env:"-" help:"Number of keys."`
	Distribution string  `env:"-" enum:",uniform,zipf,one key" default:"" help:"How keys are chosen: uniform, zipf or 'one key'."`
	Rate         float64 `env:"-" help:"Requests a second, due at that rate whether the last are answered or not (open loop); else each connection waits for its answers (closed loop)."`
	Generator    string  `env:"-" enum:"weir,redis-benchmark" default:"weir" help:"What makes the load: weir's own, or redis-benchmark to check it with."`
}

func (b benchLoad) change(l *bench.Load) {
	l.Clients, l.Pipeline = cmp.Or(b.Connections, l.Clients), cmp.Or(b.Pipeline, l.Pipeline)
	l.Keys, l.PerSecond = cmp.Or(b.Keys, l.Keys), cmp.Or(b.Rate, l.PerSecond)
	switch b.Distribution {
	case "":
	case "uniform":
		l.Distribution = bench.Uniform
	default:
		l.Distribution = bench.Distribution(b.Distribution)
	}
}

// benchTools are contenders that cannot be found automatically.
type benchTools struct {
	Weir        string `env:"-" type:"existingfile" placeholder:"FILE" help:"weir to measure, instead of the one beside weir-bench or in PATH."`
	RedisServer string `env:"-" type:"existingfile" placeholder:"FILE" help:"Redis or Valkey to measure, instead of the one in PATH."`
	RedisCell   string `env:"-" type:"existingfile" placeholder:"FILE" help:"The module libredis_cell.so, where it is not in its usual place."`
	Rivals      string `env:"-" type:"existingdir" placeholder:"DIR" help:"A directory of scripts/rivals.sh; its programs take the place of installed ones."`
}

func (b benchTools) find() (bench.Tools, error) {
	weir, err := b.findWeir()
	if err != nil {
		return bench.Tools{}, err
	}
	tools := bench.FindTools(weir)
	if b.Rivals != "" {
		tools = tools.In(b.Rivals)
	}
	tools.RedisServer, tools.RedisCell = cmp.Or(b.RedisServer, tools.RedisServer), cmp.Or(b.RedisCell, tools.RedisCell)
	return tools, nil
}

// findWeir returns the weir that was built or installed together with this program.
func (b benchTools) findWeir() (string, error) {
	if b.Weir != "" {
		return b.Weir, nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if weir, err := exec.LookPath(filepath.Join(filepath.Dir(self), "weir")); err == nil {
		return weir, nil
	}
	if weir, err := exec.LookPath("weir"); err == nil {
		return weir, nil
	}
	return "", errors.New("weir is neither beside weir-bench nor in PATH: " +
		"build it there (make build), or name it with --weir")
}

// scenarios returns the requested scenarios, with the requested loads and targets.
func (m *measureCmd) scenarios() (all []bench.Scenario, err error) {
	if len(m.Scenario) > 0 {
		all, err = bench.Pick(m.Scenario)
	} else {
		all, err = bench.Suite(m.Suite)
	}
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i], err = all[i].Reshaped(m.change); err != nil {
			return nil, err
		}
		all[i] = all[i].Only(m.Target)
	}
	all = slices.DeleteFunc(all, func(s bench.Scenario) bool { return len(s.Entrants) == 0 })
	if len(all) == 0 && !m.snapshotsWanted() {
		return nil, fmt.Errorf("no chosen scenario has one of the targets %q; see --list", m.Target)
	}
	return all, nil
}

// list writes the available scenarios.
func list(w io.Writer, all []bench.Scenario) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range all {
		fmt.Fprintf(table, "%s\t%s\n", s.Name, s.About)
		for _, e := range s.Entrants {
			fmt.Fprintf(table, "\t  %s\t%s\n", e.Target, e.Label)
		}
	}
	return table.Flush()
}
