package bench

import "math/rand/v2"

const (
	// zipfExponent gives the first of 100,000 keys a tenth of the requests.
	zipfExponent = 1.1
	// zipfDraws are drawn once and reused in a cycle, because drawing costs more than sending.
	zipfDraws = 1 << 18
)

// picker chooses the keys of a load.
type picker struct {
	load  Load
	drawn []int32 // of a zipf distribution
}

// newPicker returns the choices that links share.
func newPicker(l Load) *picker {
	p := &picker{load: l}
	if l.Distribution == Zipf {
		zipf := rand.NewZipf(rand.New(rand.NewPCG(1, 1)), zipfExponent, 1, uint64(l.Keys-1))
		p.drawn = make([]int32, zipfDraws)
		for i := range p.drawn {
			p.drawn[i] = int32(zipf.Uint64())
		}
	}
	return p
}

// of returns a function that chooses the keys of a link. Its order is the same every time.
func (p *picker) of(link int) func() int {
	random := rand.New(rand.NewPCG(uint64(link), 2))
	switch p.load.Distribution {
	case OneHot:
		return func() int { return 0 }
	case Zipf:
		at := random.IntN(len(p.drawn))
		return func() int {
			at = (at + 1) % len(p.drawn)
			return int(p.drawn[at])
		}
	default:
		keys := uint64(p.load.Keys)
		return func() int { return int(random.Uint64N(keys)) }
	}
}
