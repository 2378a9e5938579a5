package rule

import "encoding/binary"

// Steps are the packed steps of a strike limit; see MakeSteps. They are comparable.
type Steps string

// Step is one threshold of a strike limit. When the strikes in the window reach Threshold, the key is blocked for
// PenaltyNs. A Delay blocks no key: strikes from the threshold on, up to the threshold of the next Delay, are
// admitted with a delay of PenaltyNs.
type Step struct {
	Threshold int64 // units, 1..MaxLogUnits
	PenaltyNs int64 // 1..MaxWindowNs
	Delay     bool
}

// delayBit marks a packed penalty as a delay. Older versions read a negative penalty, and reject it.
const delayBit = 1 << 63

// MakeSteps packs 1..MaxSteps steps with strictly ascending thresholds. The caller has checked both.
func MakeSteps(steps []Step) Steps {
	b := make([]byte, 0, len(steps)*stepLen)
	for _, s := range steps {
		penalty := uint64(s.PenaltyNs)
		if s.Delay {
			penalty |= delayBit
		}
		b = binary.LittleEndian.AppendUint64(b, uint64(s.Threshold))
		b = binary.LittleEndian.AppendUint64(b, penalty)
	}
	return Steps(b)
}

const stepLen = 16

// Len returns the number of steps.
func (s Steps) Len() int { return len(s) / stepLen }

// At returns step i.
func (s Steps) At(i int) Step {
	b := []byte(s[i*stepLen : (i+1)*stepLen])
	penalty := binary.LittleEndian.Uint64(b[8:])
	threshold := int64(binary.LittleEndian.Uint64(b))
	return Step{Threshold: threshold, PenaltyNs: int64(penalty &^ delayBit), Delay: penalty&delayBit != 0}
}

// Delays reports whether one of the steps is a delay.
func (s Steps) Delays() bool {
	for i := range s.Len() {
		if s.At(i).Delay {
			return true
		}
	}
	return false
}

// Valid reports whether the steps meet the requirements of MakeSteps.
func (s Steps) Valid() bool {
	last := int64(0)
	for i := range s.Len() {
		step := s.At(i)
		if step.Threshold <= last || step.Threshold > MaxLogUnits || step.PenaltyNs < 1 ||
			step.PenaltyNs > MaxWindowNs {
			return false
		}
		last = step.Threshold
	}
	return s.Len() > 0 && s.Len() <= MaxSteps && len(s)%stepLen == 0
}

// Reached returns the effect of a count that grows from was to count. penaltyNs is the penalty of the highest
// step without Delay whose threshold the count reaches. A threshold that was already reached counts only for
// the last step, or with again. last reports whether penaltyNs belongs to the last step. delayNs is the delay
// of the highest step with Delay whose threshold is at most count.
func (s Steps) Reached(was, count int64, again bool) (penaltyNs int64, last bool, delayNs int64) {
	for i := range s.Len() {
		step := s.At(i)
		end := i == s.Len()-1
		switch {
		case count < step.Threshold:
		case step.Delay:
			delayNs = step.PenaltyNs
		case was < step.Threshold || end || again:
			penaltyNs, last = step.PenaltyNs, end
		}
	}
	return penaltyNs, last, delayNs
}
