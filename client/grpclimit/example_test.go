package grpclimit_test

import (
	"context"
	"fmt"
	"log"
	"net"

	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/client/grpclimit"
)

// This example needs a server: it is compiled and not run.
func ExampleNew() {
	rdb := redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs: []string{"127.0.0.1:6380"}, ContextTimeoutEnabled: true, DialerRetries: 1,
	})
	limits, err := client.New(rdb, client.Options{WhenDown: client.Closed})
	if err != nil {
		log.Fatal(err)
	}
	limit, err := grpclimit.New(limits, grpclimit.Options{
		Methods: []grpclimit.Method{
			{Name: "/shop.Orders/Create", Rule: client.TokenBucket(client.PerSecond(5), 10), Key: grpclimit.ByPeer()},
			{Name: "/", Rule: client.Policy("api"), Key: grpclimit.BySecret("authorization")},
		},
		Exclude: []string{"/grpc.health.v1.Health/"},
	})
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(limit.Unary), grpc.StreamInterceptor(limit.Stream))
	defer server.Stop()
}

func ExampleFirstOf() {
	key := grpclimit.FirstOf(grpclimit.ByMetadata("tenant"), grpclimit.ByPeer())
	call := peer.NewContext(context.Background(), &peer.Peer{
		Addr: &net.TCPAddr{IP: net.ParseIP("203.0.113.7"), Port: 1234},
	})
	fmt.Println(key(call))
	fmt.Println(key(metadata.NewIncomingContext(call, metadata.Pairs("tenant", "acme"))))
	// Output:
	// ip:203.0.113.7
	// metadata:acme
}

func ExampleByUser() {
	type userKey struct{}
	key := grpclimit.ByUser(func(ctx context.Context) string {
		name, _ := ctx.Value(userKey{}).(string)
		return name
	})
	fmt.Println(key(context.WithValue(context.Background(), userKey{}, "alice")))
	// Output: user:alice
}
