// Package grpclimit limits gRPC calls with weir. It provides interceptors for gRPC servers.
//
//	limit, err := grpclimit.New(limits, grpclimit.Options{
//		Methods: []grpclimit.Method{
//			{Name: "/shop.Orders/Create", Rule: create, Key: grpclimit.ByPeer()},
//			{Name: "/", Rule: api, Key: grpclimit.FirstOf(grpclimit.BySecret("authorization"), grpclimit.ByPeer())},
//		},
//		Exclude: []string{"/grpc.health.v1.Health/"},
//	})
//	grpc.NewServer(grpc.UnaryInterceptor(limit.Unary), grpc.StreamInterceptor(limit.Stream))
//
// A stream costs one unit when it begins. Response headers carry the rate limit fields of HTTP. A
// denial has the code RESOURCE_EXHAUSTED, or UNAVAILABLE if weir is not reached. Its RetryInfo has
// the retry time.
package grpclimit
