package engine

import (
	"fmt"

	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/codec"
	"github.com/weir-project/weir/engine/internal/rule"
)

// The stored form of a policy whose definitions have changed begins with its history. Without a history it is the form
// of policycodec.go alone, so that older versions can read it.
//
//	stored     = 4 length zones origin origins(of the overrides) past(n, definition ...) horizon terms
//	origin     = boundary since(n, moment ...)
//	definition = pattern from until limits
//	boundary      = moment offset
//
// The length is that of the history, with zones as in the terms.
const historyFormat = 4

// appendStored appends the policy's stored form, without its name.
func (p *Policy) appendStored(b []byte) []byte {
	if !p.moves {
		return p.Append(b)
	}
	var e policyEncoder
	for i := range p.past {
		e.zonesOf(p.past[i].limits)
	}
	e.zoneList()
	e.origin(&p.origin)
	for i := range p.Overrides {
		e.origin(&p.Overrides[i].origin)
	}
	e.int(int64(len(p.past)))
	for i := range p.past {
		d := &p.past[i]
		e.int(int64(len(d.pattern)))
		e.b = append(e.b, d.pattern...)
		e.boundary(d.from)
		e.boundary(d.until)
		e.limits(d.limits)
	}
	e.boundary(p.horizon)
	to := policyEncoder{b: append(b, historyFormat)}
	to.int(int64(len(e.b)))
	return p.Append(append(to.b, e.b...))
}

func (e *policyEncoder) boundary(s boundary) {
	e.b = s.Append(e.b)
	e.int(s.offsetNs)
}

func (e *policyEncoder) origin(o *origin) {
	e.boundary(o.from)
	e.int(int64(len(o.since)))
	for _, m := range o.since {
		e.b = m.Append(e.b)
	}
}

// decodeStored decodes the bytes that appendStored wrote.
func decodeStored(name string, b []byte) (*Policy, error) {
	if len(b) == 0 || b[0] != historyFormat {
		return DecodePolicy(name, b)
	}
	outer := codec.Decoder{B: b[1:]}
	d := policyDecoder{Decoder: codec.Decoder{B: outer.Bytes(outer.Varint())}}
	p, err := DecodePolicy(name, outer.B)
	if err != nil || outer.Bad {
		return nil, fmt.Errorf("%w: policy %q", ErrStored, name)
	}
	d.zoneList()
	p.origin = d.origin(len(p.Limits))
	for i := range p.Overrides {
		p.Overrides[i].origin = d.origin(len(p.Overrides[i].Limits))
	}
	for n := d.Within(0, maxPast); n > 0 && !d.Bad; n-- {
		x := definition{pattern: string(d.Bytes(d.Within(0, MaxKeyLen))), from: d.boundary(), until: d.boundary()}
		x.limits = d.limits()
		p.past = append(p.past, x)
	}
	p.horizon = d.boundary()
	if d.Bad || len(d.B) > 0 {
		return nil, fmt.Errorf("%w: the history of policy %q", ErrStored, name)
	}
	return p, nil
}

func (d *policyDecoder) boundary() boundary {
	return boundary{rule.ReadMoment(&d.Decoder), d.Within(-arith.Never, arith.Never)}
}

// origin decodes the origin of so many limits.
func (d *policyDecoder) origin(limits int) (o origin) {
	o.from = d.boundary()
	n := d.Within(0, MaxPolicyLimits)
	d.Bad = d.Bad || n > 0 && n != int64(limits)
	for ; n > 0 && !d.Bad; n-- {
		o.since = append(o.since, rule.ReadMoment(&d.Decoder))
	}
	return o
}
