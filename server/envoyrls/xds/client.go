package xds

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/weir-project/weir/internal/rlspb"
	"github.com/weir-project/weir/server/envoyrls/rules"
)

const (
	// TypeURL is the type of the resources.
	TypeURL = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig"

	streamMethod = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"

	// FirstWait and mostWait bound the time between two connections. It doubles from one to the other, until a
	// response arrives. A control plane that restarts is asked again soon, and one that is down costs little.
	FirstWait = 500 * time.Millisecond
	mostWait  = 30 * time.Second
	// mostRepeat bounds the time before the answer to limits that were refused already. The time begins with FirstWait
	// and doubles. Control planes such as those of go-control-plane send refused limits again at once, without end.
	mostRepeat = 10 * time.Second
	// maxMessageBytes bounds a response, whose decoded form may be a hundred times as large. It is the default of gRPC,
	// and has room for 40,000 descriptors of 100 bytes.
	maxMessageBytes = 4 << 20
	// maxErrorBytes bounds the error that the control plane is told. Control planes put it into their logs.
	maxErrorBytes = 2 << 10
	// pingEvery detects a control plane that disappeared. Servers refuse more frequent pings by default.
	pingEvery = 5 * time.Minute
	// pingTimeout is how long an answer to a ping may take.
	pingTimeout = 20 * time.Second
)

// Client subscribes to the limits of a control plane.
type Client struct {
	Addr string // HOST:PORT, or another target of package grpc
	Node string // the id by which the control plane selects the limits
	// Credentials is called before each connection, so that renewed certificates count.
	Credentials func() (credentials.TransportCredentials, error)
	Log         *slog.Logger
	// Apply puts limits in force, in place of all limits before. It gets the error of reading them, if there is one. If
	// it returns an error, the control plane is told that the limits before stay.
	Apply func(sources []rules.Source, err error) error

	refused []*anypb.Any  // the limits that Apply refused last
	refusal *rlspb.Error  // why; nil: the last limits were not refused
	repeat  time.Duration // how long to wait before the next answer to them
}

// Run subscribes until ctx ends. It connects again after each error.
func (c *Client) Run(ctx context.Context) {
	for wait := FirstWait; ctx.Err() == nil; wait = min(2*wait, mostWait) {
		heard, err := c.subscribe(ctx)
		if ctx.Err() != nil {
			return
		}
		if heard {
			wait = FirstWait
		}
		c.Log.Warn("no connection to the control plane of --envoy-xds; the limits stay as they are", "server", c.Addr,
			"error", err, "next_try", wait.String())
		pause(ctx, wait/2+rand.N(wait/2+1)) // nodes that lost one server do not come back all at once
	}
}

// pause waits, at most until ctx ends.
func pause(ctx context.Context, wait time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(wait):
	}
}

// subscribe connects and carries out responses until an error. heard reports whether there was a response.
func (c *Client) subscribe(ctx context.Context) (heard bool, err error) {
	secured, err := c.Credentials()
	if err != nil {
		return false, err
	}
	conn, err := grpc.NewClient(c.Addr, grpc.WithTransportCredentials(secured),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageBytes)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingEvery, Timeout: pingTimeout}))
	if err != nil {
		return false, err
	}
	defer conn.Close()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, streamMethod)
	if err != nil {
		return false, err
	}
	// A new stream names no version: a control plane that has restarted may use the same version for other limits.
	request := &rlspb.DiscoveryRequest{Node: &rlspb.Node{Id: c.Node}, TypeUrl: TypeURL}
	for {
		if err := stream.SendMsg(request); err != nil {
			return heard, errors.Join(err, stream.RecvMsg(new(rlspb.DiscoveryResponse)))
		}
		in := new(rlspb.DiscoveryResponse)
		if err := stream.RecvMsg(in); err != nil {
			return heard, err
		}
		heard = true
		c.answer(ctx, in, request)
	}
}

// answer carries out a response, and makes request the answer to it.
func (c *Client) answer(ctx context.Context, in *rlspb.DiscoveryResponse, request *rlspb.DiscoveryRequest) {
	request.ResponseNonce = in.Nonce
	// go-control-plane 0.14.0 sends the resources of one version in another order each time.
	slices.SortFunc(in.Resources, func(a, b *anypb.Any) int { return bytes.Compare(a.Value, b.Value) })
	if c.refusal != nil && slices.EqualFunc(in.Resources, c.refused, sameResource) {
		pause(ctx, c.repeat)
		c.repeat = min(2*c.repeat, mostRepeat)
	} else {
		c.judge(in)
	}
	if request.ErrorDetail = c.refusal; c.refusal == nil {
		request.VersionInfo = in.VersionInfo
	}
}

// judge puts the limits of a response in force, or sets why not.
func (c *Client) judge(in *rlspb.DiscoveryResponse) {
	c.refused, c.refusal, c.repeat = nil, nil, FirstWait
	sources, err := read(in)
	if err = c.Apply(sources, err); err == nil {
		return
	}
	text := err.Error()
	text = strings.ToValidUTF8(text[:min(len(text), maxErrorBytes)], "?")
	c.refused, c.refusal = in.Resources, &rlspb.Error{Code: int32(codes.InvalidArgument), Message: text}
}

func sameResource(a, b *anypb.Any) bool {
	return a.TypeUrl == b.TypeUrl && bytes.Equal(a.Value, b.Value)
}

// read reads the resources of a response.
func read(in *rlspb.DiscoveryResponse) (sources []rules.Source, err error) {
	for _, resource := range in.Resources {
		if resource.TypeUrl != TypeURL {
			return nil, fmt.Errorf("a resource has the type %s, not %s", resource.TypeUrl, TypeURL)
		}
		config := new(rlspb.DomainConfig)
		if err := proto.Unmarshal(resource.Value, config); err != nil {
			return nil, err
		}
		sources = append(sources, rules.Source{Name: config.Name, Domain: config.Domain,
			Descriptors: descriptors(config.Descriptors)})
	}
	return sources, nil
}

func descriptors(all []*rlspb.DescriptorConfig) []rules.Descriptor {
	out := make([]rules.Descriptor, len(all))
	for i, d := range all {
		out[i] = rules.Descriptor{Key: d.Key, Value: d.Value, ShadowMode: d.ShadowMode,
			DetailedMetric: d.DetailedMetric, Descriptors: descriptors(d.Descriptors)}
		if l := d.RateLimit; l != nil {
			limit := &rules.Limit{RequestsPerUnit: l.RequestsPerUnit, Unit: l.Unit, Unlimited: l.Unlimited,
				Name: l.Name}
			for _, r := range l.Replaces {
				limit.Replaces = append(limit.Replaces, r.Name)
			}
			out[i].Limit = limit
		}
	}
	return out
}
