package bench

import (
	"fmt"
	"slices"
	"strings"
)

// These are the names of the suites in flags.
const (
	StandardSuite   = "standard"   // the suite of make bench
	StandaloneSuite = "standalone" // one node under all kinds of load
	ClusterSuite    = "cluster"
	GrowthSuite     = "growth"    // more keys, connections, pipelining, nodes
	RivalsSuite     = "rivals"    // the suite of make bench-rivals
	SnapshotsSuite  = "snapshots" // no scenario: only the effect of snapshots on latency
	FullSuite       = "full"      // all of them but the rivals
)

// bucket is the usual load of token buckets.
func bucket(clients, pipeline int) Load {
	return Load{Workload: TokenBucket, Clients: clients, Pipeline: pipeline, Keys: usualKeys}
}

// kept is a load of existing buckets, with keys of 15 bytes.
func kept(keys int) Load {
	return Load{Workload: Lasting, Clients: usualClients, Pipeline: 16, Keys: keys, KeyBytes: 15, Filled: true}
}

// standard is the short suite.
func standard() []Scenario {
	log := bucket(usualClients, 128)
	log.Workload = SlidingLog
	half := beside("open-half", bucket(usualClients, 1), weirName, luaName, setName)
	half.RateOf, half.RateShare = luaName, 0.5
	return []Scenario{
		beside("bucket-p128", bucket(usualClients, 128), weirName, luaName, setName, replicasName, cellName, crabName),
		beside("bucket-p16", bucket(usualClients, 16), weirName, luaName, setName),
		beside("bucket-p1", bucket(usualClients, 1), weirName, luaName, setName, cellName, crabName),
		beside("log-p128", log, weirName, luaName),
		half,
		hotKey(),
		beside("memory-1m", kept(1_000_000), weirName, luaName),
	}
}

// hotKey compares a single hot key with many keys, on one server.
func hotKey() Scenario {
	many := bucket(64, 16)
	one := many
	one.Distribution = OneHot
	return Scenario{Name: "hot-key", About: "token bucket, -P 16 -c 64, one hot key beside 100000 keys",
		Entrants: []Entrant{
			{Label: "one hot key", Target: weirName, Load: one}, {Label: "100k keys", Target: weirName, Load: many},
		}}
}

// standalone has the other scenarios of one node.
func standalone() []Scenario {
	shaped := func(change func(*Load)) Load {
		l := bucket(usualClients, 128)
		change(&l)
		return l
	}
	return []Scenario{
		beside("zipf-p128", shaped(func(l *Load) { l.Distribution = Zipf }), weirName, luaName),
		fourLimits(),
		beside("memory-10m", kept(10_000_000), weirName, luaName),
		liveKeys(),
		steadyKeys(),
		beside("held", shaped(hold), weirName),
	}
}

// fourLimits compares RL.CHECK of a policy with four limits and RL.TOKENBUCKET, on the same server.
func fourLimits() Scenario {
	one := bucket(usualClients, 128)
	one.Workload = Lasting
	four := one
	four.Workload = Checked
	return Scenario{Name: "check-p128", About: "a policy of four limits beside one limit, -P 128 -c 50, 100000 keys",
		Entrants: []Entrant{
			{Label: fourName, Target: weirName, Load: four}, {Label: oneName, Target: weirName, Load: one},
		}}
}

// These are the labels of fourLimits.
const (
	fourName = "RL.CHECK, four limits"
	oneName  = "RL.TOKENBUCKET"
)

// hold sets as many clients as weir accepts by default, each with one request per second.
func hold(l *Load) {
	l.Clients, l.Pipeline, l.PerSecond, l.Held = mostClients, 1, mostClients, true
}

// liveKeys compares the latency with few and with many existing keys, at half of the top rate of a server with few
// keys.
func liveKeys() Scenario {
	return Scenario{
		Name: "live-keys", About: "latency with 10 k and with 10 M live keys", RateOf: "10k keys", RateShare: 0.5,
		Entrants: []Entrant{
			{Label: "10k keys", Target: weirName, Load: kept(10_000)},
			{Label: "10M keys", Target: weirName, Load: kept(10_000_000)},
		},
	}
}

// steadyKeys compares the same as liveKeys, at a rate that leaves the machine idle time: about half of what Redis
// takes with its script.
func steadyKeys() Scenario {
	s := liveKeys()
	s.Name, s.About, s.RateOf, s.RateShare = "live-keys-steady",
		"latency with 10 k and with 10 M live keys, -P 16, at a steady rate", "", 0
	for i := range s.Entrants {
		s.Entrants[i].Load.PerSecond = steadyRate
	}
	return s
}

const steadyRate = 50_000

func cluster() []Scenario {
	denied := Load{Workload: Denied, Clients: usualClients, Pipeline: 128, Keys: hotKeys}
	all := []string{leaderName, followerName, osName, weirName, luaName}
	return []Scenario{
		beside("cluster-p128", bucket(usualClients, 128), append(all, replicasName)...),
		beside("cluster-p16", bucket(usualClients, 16), all...),
		beside("cluster-p1", bucket(usualClients, 1), all...),
		beside("cluster-c512", bucket(manyClients, 1), all...),
		beside("cluster-denied", denied, leaderName, weirName),
	}
}

func growth() []Scenario {
	fill := func(l *Load, keys int) { l.Keys = keys }
	nodes := Scenario{Name: "grow-nodes", About: bucket(usualClients, 128).String() + ", 1 to 5 nodes"}
	for _, t := range []string{aloneName, leaderName, fiveName} {
		nodes.Entrants = append(nodes.Entrants, Entrant{t, t, bucket(usualClients, 128)})
	}
	return []Scenario{
		growing("grow-keys", "keys", kept(1), []int{10_000, 100_000, 1_000_000, 10_000_000}, fill, weirName),
		growing("grow-connections", "connections", bucket(1, 16), []int{1, 10, 50, 200, 1000, 5000}, setClients,
			weirName, luaName),
		// 248 token bucket requests of weir are 16 KiB.
		growing("grow-pipelines", "requests a pipeline", bucket(usualClients, 1), []int{1, 4, 16, 64, 248}, setPipeline,
			weirName, luaName),
		nodes,
	}
}

func setClients(l *Load, n int)  { l.Clients = n }
func setPipeline(l *Load, n int) { l.Pipeline = n }

// Suite returns the scenarios of a suite.
func Suite(name string) ([]Scenario, error) {
	switch name {
	case StandardSuite:
		return standard(), nil
	case StandaloneSuite:
		return slices.Concat(standard(), standalone()), nil
	case ClusterSuite:
		return cluster(), nil
	case GrowthSuite:
		return growth(), nil
	case RivalsSuite:
		return rivals(), nil
	case SnapshotsSuite:
		return nil, nil
	case FullSuite:
		return slices.Concat(standard(), standalone(), cluster(), growth()), nil
	}
	return nil, fmt.Errorf("%w: suite %q", ErrUnknownName, name)
}

// Pick returns scenarios by name, in the order of the full suite. Rivals come last.
func Pick(names []string) (picked []Scenario, err error) {
	all, err := Suite(FullSuite)
	if err != nil {
		return nil, err
	}
	all = append(all, rivals()...)
	for _, s := range all {
		if slices.Contains(names, s.Name) {
			picked = append(picked, s)
		}
	}
	known := mapOf(all, func(s Scenario) string { return s.Name })
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("%w: scenario %q; there are %s", ErrUnknownName, name, strings.Join(known, ", "))
		}
	}
	return picked, nil
}
