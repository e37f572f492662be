// Package shop limits a gRPC service whose code protoc-gen-go-grpc has generated.
package shop

import (
	"context"

	"google.golang.org/grpc"

	"example.com/shop/catalogpb"
)

//go:generate go tool ratelimit

// CatalogServer is the generated interface. All its methods share one budget.
//
//ratelimit:rule limit=3 per=1h
type CatalogServer = catalogpb.CatalogServer

// CatalogClient is the generated interface of clients.
//
//ratelimit:rule limit=2 per=1h
type CatalogClient = catalogpb.CatalogClient

// Lister has a method whose cost is known when its stream has ended.
type Lister interface {
	//ratelimit:rule name=items limit=100 per=1h cost=10
	List(ctx context.Context, in *catalogpb.ListRequest, opts ...grpc.CallOption) (grpc.ServerStreamingClient[catalogpb.Item], error)
}

// Items is a stream of a service. The context of a message is that of the stream.
type Items interface {
	grpc.ServerStream

	//ratelimit:rule name=sent key="{userID(ctx)}" limit=2 per=1h wait=1h
	Send(*catalogpb.Item) error
}

// Server is an implementation with limits of its own.
type Server struct {
	catalogpb.UnimplementedCatalogServer
}

// Get returns an item.
//
//ratelimit:rule key="{req.Id}" limit=1 per=1h
func (s *Server) Get(ctx context.Context, req *catalogpb.GetRequest) (*catalogpb.Item, error) {
	return &catalogpb.Item{Id: req.GetId()}, nil
}
