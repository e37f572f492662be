package main

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ratelimit-go/ratelimit/contrib/grpclimit"
	"github.com/ratelimit-go/ratelimit/examples/shop/shoppb"
	"github.com/ratelimit-go/ratelimit/runtime/httplimit"
)

// newServer serves the shop over gRPC. The interceptors turn refusals into statuses.
func newServer(s Shop, u users, clients httplimit.Clients) *grpc.Server {
	caller := []grpclimit.Option{grpclimit.WithClients(clients), grpclimit.WithUserID(u.ofCall)}
	server := grpc.NewServer(
		grpc.UnaryInterceptor(grpclimit.UnaryServerInterceptor(caller...)),
		grpc.StreamInterceptor(grpclimit.StreamServerInterceptor(caller...)))
	shoppb.RegisterShopServer(server, &service{shop: s})
	return server
}

// service is the shop as its proto file describes it.
type service struct {
	shoppb.UnimplementedShopServer
	shop Shop
}

func (s *service) Search(req *shoppb.SearchRequest, stream grpc.ServerStreamingServer[shoppb.Product]) error {
	products, err := s.shop.Search(stream.Context(), req.GetText())
	for _, p := range products {
		if err := stream.Send(&shoppb.Product{Name: p.Name, Cents: p.Cents}); err != nil {
			return err
		}
	}
	return err
}

func (s *service) Order(ctx context.Context, req *shoppb.OrderRequest) (*shoppb.OrderReply, error) {
	cents, err := s.shop.Order(ctx, req.GetProduct())
	switch {
	case errors.Is(err, errUnknownProduct):
		return nil, status.Error(codes.NotFound, err.Error())
	case errors.Is(err, errBusy):
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	return &shoppb.OrderReply{Cents: cents}, err
}
