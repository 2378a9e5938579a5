// Package grpclimit limits gRPC calls with weir, as interceptors for servers.
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
// A stream costs one unit when it begins. Headers carry the fields of HTTP. A denial is
// RESOURCE_EXHAUSTED, or UNAVAILABLE where weir is not reached, with a RetryInfo that
// says when to come back.
package grpclimit
