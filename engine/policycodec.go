package engine

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/calendar"
	"github.com/weir-project/weir/engine/internal/codec"
	"github.com/weir-project/weir/engine/internal/rule"
)

// The stored form of a policy. Integers are varints, and texts are preceded by their length. Format 2 adds an
// owner. Format 3 begins with a bit set, which tells which of owner, layout, reportNs and events follow. A policy is
// stored in the oldest format that has its fields, so that older versions can read it.
//
//	policy   = format [fields] [owner] [layout] [reportNs] [events] version flags retryNs reserved
//	           zones limits overrides(n, override ...)
//	zones    = n (name changes(n, seconds since the previous change, offset ...)) ...
//	limits   = n (algorithm limit waitNs zone(number from 1, or 0)) ...
//	override = pattern untilNs limits
//	events   = record notified(n, number thresholds ...)
//
// The numbers of events count the limits of the policy and then those of the overrides.

const (
	policyFormat = 1
	ownedFormat  = 2
	fieldsFormat = 3
)

// The fields that format 3 may have, in their order.
const (
	fieldOwner = 1 << iota
	fieldLayout
	fieldReport
	fieldEvents
	numFields = iota
)

const (
	policyShadow = 1 << iota
	policyDisabled
)

// Append appends the terms and the version of a policy, without its name. appendStored also appends its history.
func (p *Policy) Append(b []byte) []byte {
	e := policyEncoder{b: append(b, policyFormat)}
	switch fields := p.fields(); {
	case fields&^fieldOwner != 0:
		e.b[len(b)] = fieldsFormat
		e.fields(p, fields)
	case fields != 0:
		e.b[len(b)] = ownedFormat
		e.text(p.Owner)
	}
	e.int(int64(p.Version))
	e.int(arith.OneIf(p.Shadow)*policyShadow | arith.OneIf(p.Disabled)*policyDisabled)
	e.int(p.RetryNs)
	e.int(p.Reserved)
	e.zonesOf(p.Limits)
	for i := range p.Overrides {
		e.zonesOf(p.Overrides[i].Limits)
	}
	e.zoneList()
	e.limits(p.Limits)
	e.int(int64(len(p.Overrides)))
	for i := range p.Overrides {
		o := &p.Overrides[i]
		e.text(o.Pattern)
		e.int(o.UntilNs)
		e.limits(o.Limits)
	}
	return e.b
}

// fields returns the fields of format 3 that the policy needs.
func (p *Policy) fields() int64 {
	return arith.OneIf(p.Owner != "")*fieldOwner | arith.OneIf(p.Layout != "")*fieldLayout |
		arith.OneIf(p.ReportNs != 0)*fieldReport | arith.OneIf(p.Record || p.hasThresholds())*fieldEvents
}

func (e *policyEncoder) fields(p *Policy, fields int64) {
	e.int(fields)
	if fields&fieldOwner != 0 {
		e.text(p.Owner)
	}
	if fields&fieldLayout != 0 {
		e.text(p.Layout)
	}
	if fields&fieldReport != 0 {
		e.int(p.ReportNs)
	}
	if fields&fieldEvents != 0 {
		e.events(p)
	}
}

func (e *policyEncoder) events(p *Policy) {
	e.int(arith.OneIf(p.Record))
	n := int64(0)
	for _, l := range p.allLimits() {
		n += arith.OneIf(l.Notify != "")
	}
	e.int(n)
	for i, l := range p.allLimits() {
		if l.Notify != "" {
			e.int(int64(i))
			e.text(string(l.Notify))
		}
	}
}

type policyEncoder struct {
	b     []byte
	zones []*Zone
}

func (e *policyEncoder) int(n int64) { e.b = binary.AppendVarint(e.b, n) }

func (e *policyEncoder) text(s string) {
	e.int(int64(len(s)))
	e.b = append(e.b, s...)
}

// zonesOf adds the zones of limits to the list of zones, each once.
func (e *policyEncoder) zonesOf(limits []PolicyLimit) {
	for i := range limits {
		if z := limits[i].Zone; z != nil && e.number(z) == 0 {
			e.zones = append(e.zones, z)
		}
	}
}

// zoneList appends the list of zones.
func (e *policyEncoder) zoneList() {
	e.int(int64(len(e.zones)))
	for _, z := range e.zones {
		e.zone(z)
	}
}

// number returns the position of a zone in the list of zones, from 1, or 0 if it is not in the list.
func (e *policyEncoder) number(z *Zone) int64 {
	return int64(slices.IndexFunc(e.zones, func(other *Zone) bool {
		return sameZone(other, z)
	})) + 1
}

func (e *policyEncoder) zone(z *Zone) {
	e.text(z.Name)
	e.int(int64(len(z.Changes)))
	last := int64(0)
	for _, c := range z.Changes {
		e.int(c.AtSec - last)
		e.int(c.OffsetSec)
		last = c.AtSec
	}
}

func (e *policyEncoder) limits(limits []PolicyLimit) {
	e.int(int64(len(limits)))
	for i := range limits {
		l := &limits[i]
		e.b = l.Limit.Append(append(e.b, byte(l.Limit.Algorithm)))
		e.int(l.WaitNs)
		e.int(e.number(l.Zone))
	}
}

// DecodePolicy decodes the bytes that Append wrote, and keeps no part of b. For bytes that it cannot decode it
// returns ErrStored. The caller gives the name. DecodePolicy checks each limit, but not what Validate checks for
// the policy as a whole. The result may have no limits, as in a change of overrides.
func DecodePolicy(name string, b []byte) (*Policy, error) {
	d := policyDecoder{Decoder: codec.Decoder{B: b}}
	p := &Policy{Name: name}
	switch d.Byte() {
	case policyFormat:
	case ownedFormat:
		p.Owner = d.text(MaxPolicyLen)
		d.Bad = d.Bad || !validName(p.Owner)
	case fieldsFormat:
		d.fields(p)
	default:
		return nil, fmt.Errorf("%w: policy %q is in another format", ErrStored, name)
	}
	p.Version = uint64(d.Within(0, Never))
	flags := d.Within(0, policyShadow|policyDisabled)
	p.Shadow, p.Disabled = flags&policyShadow != 0, flags&policyDisabled != 0
	p.RetryNs, p.Reserved = d.Within(0, MaxWindowNs), d.Within(0, MaxReserved)
	d.zoneList()
	p.Limits = d.limits()
	for n := d.Within(0, MaxOverrides+MaxGlobs); n > 0 && !d.Bad; n-- {
		o := Override{Pattern: d.text(MaxKeyLen), UntilNs: d.Within(1, Never), Limits: d.limits()}
		p.Overrides = append(p.Overrides, o)
	}
	d.giveThresholds(p)
	if d.Bad || len(d.B) > 0 {
		return nil, fmt.Errorf("%w: policy %q", ErrStored, name)
	}
	return p, nil
}

type policyDecoder struct {
	codec.Decoder
	zones []*Zone
	// notify has the thresholds by the number of the limit; events is whether the policy has this field.
	notify map[int]Thresholds
	events bool
}

func (d *policyDecoder) text(most int64) string { return string(d.Bytes(d.Within(1, most))) }

func (d *policyDecoder) fields(p *Policy) {
	fields := d.Within(0, 1<<numFields-1)
	d.Bad = d.Bad || fields&^fieldOwner == 0 // older formats encode such policies
	if fields&fieldOwner != 0 {
		p.Owner = d.text(MaxPolicyLen)
		d.Bad = d.Bad || !validName(p.Owner)
	}
	if fields&fieldLayout != 0 {
		p.Layout = d.text(maxLayoutText)
	}
	if fields&fieldReport != 0 {
		p.ReportNs = d.Within(1, MaxWindowNs)
	}
	if d.events = fields&fieldEvents != 0; d.events {
		p.Record, d.notify = d.Within(0, 1) == 1, map[int]Thresholds{}
		for n := d.Within(0, maxLimits); n > 0 && !d.Bad; n-- {
			number := int(d.Within(0, maxLimits-1))
			d.notify[number] = Thresholds(d.text(MaxThresholds))
		}
	}
}

// maxLimits bounds the limits of a policy and its overrides.
const maxLimits = MaxPolicyLimits * (MaxOverrides + MaxGlobs + 1)

// giveThresholds gives the limits of a decoded policy their thresholds.
func (d *policyDecoder) giveThresholds(p *Policy) {
	given := 0
	for i, l := range p.allLimits() {
		if t, ok := d.notify[i]; ok {
			l.Notify = t
			given++
			d.Bad = d.Bad || !l.valid()
		}
	}
	d.Bad = d.Bad || given != len(d.notify) || d.events && !p.Record && given == 0
}

func (d *policyDecoder) zoneList() {
	for n := d.Within(0, maxLimits); n > 0 && !d.Bad; n-- {
		d.zones = append(d.zones, d.zone())
	}
}

func (d *policyDecoder) zone() *Zone {
	z := &Zone{Name: d.text(calendar.MaxNameLen)}
	last := int64(0)
	for n := d.Within(0, MaxZoneChanges); n > 0 && !d.Bad; n-- {
		last += d.Within(-1<<40, 1<<40) // seconds: more than any calendar needs, and too few to overflow
		offset := d.Within(-calendar.MaxOffsetSec, calendar.MaxOffsetSec)
		z.Changes = append(z.Changes, ZoneChange{AtSec: last, OffsetSec: offset})
	}
	return z
}

func (d *policyDecoder) limits() (limits []PolicyLimit) {
	for n := d.Within(0, MaxPolicyLimits); n > 0 && !d.Bad; n-- {
		l := PolicyLimit{Limit: rule.ReadLimit(&d.Decoder, Algorithm(d.Byte())), WaitNs: d.Within(0, MaxWindowNs)}
		if zone := d.Within(0, int64(len(d.zones))); zone > 0 && !d.Bad {
			l.Zone = d.zones[zone-1]
		}
		d.Bad = d.Bad || !l.valid() || l.Limit.Since != rule.Moment{}
		limits = append(limits, l)
	}
	return limits
}

// policyClass is the first byte of the storage key of a policy. The policy's name follows.
const policyClass = 'p'
