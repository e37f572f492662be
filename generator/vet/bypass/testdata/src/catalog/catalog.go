// Package catalog annotates a struct that is a gRPC service, and an alias of the interface of another service.
package catalog

import (
	"context"

	"pb"
)

type Server struct { // want Server:"limits Get"
	pb.UnimplementedCatalogServer
	dsn string
}

func New(dsn string) *Server { return &Server{dsn: dsn} }

//ratelimit:rule limit=1 per=1m
func (s *Server) Get(ctx context.Context, r *pb.GetRequest) (*pb.GetRequest, error) { return r, nil }

func (s *Server) Warm() { s.Get(context.Background(), nil) } // want `Get of the receiver has no limits`

// Service is the interface, with limits.
//
//ratelimit:rule limit=1 per=1m
type Service = pb.CatalogServer
