package bench

import (
	"context"
	"fmt"
)

// GeneratorName names a load generator in a load.
type GeneratorName string

const (
	OurGenerator     GeneratorName = "" // the run chooses it; by default it is Builtin
	ByRedisBenchmark GeneratorName = "redis-benchmark"
	ByTwoThreads     GeneratorName = "redis-benchmark --threads 2"
)

// threads returns how many threads of redis-benchmark make a load.
func (n GeneratorName) threads() int {
	if n == ByTwoThreads {
		return 2
	}
	return 1
}

// suffix distinguishes the scenarios of a generator.
func (n GeneratorName) suffix() string {
	if n == OurGenerator {
		return ""
	}
	return fmt.Sprintf("-rb%d", n.threads())
}

// Generators chooses the generator that a load names. A run can thus compare targets under several generators.
type Generators map[GeneratorName]Generator

var _ Generator = Generators(nil)

// Run implements Generator.
func (g Generators) Run(ctx context.Context, job Job) (Outcome, error) {
	if err := g.has(job.Load.By); err != nil {
		return Outcome{}, err
	}
	return g[job.Load.By].Run(ctx, job)
}

func (g Generators) has(name GeneratorName) error {
	if g[name] == nil {
		return fmt.Errorf("%s %w; %s", name, ErrToolMissing, redisHint)
	}
	return nil
}

// lacks returns why the run cannot make a load, or nil.
func (r *Runner) lacks(l Load) error {
	if all, ok := r.Generator.(Generators); ok {
		return all.has(l.By)
	}
	return nil
}
