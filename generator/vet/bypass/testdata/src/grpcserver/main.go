// Command grpcserver registers services.
package main

import (
	"context"

	"catalog"
	"pb"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"google.golang.org/grpc"
)

// health is another service, which does not hold the annotated struct.
type health struct{ pb.UnimplementedCatalogServer }

// tenant has the promoted method of the struct.
type tenant struct {
	*catalog.Server
	name string
}

func main() {
	limiter := ratelimit.New()
	s := grpc.NewServer()
	server := catalog.New("dsn")
	server.Warm()
	pb.RegisterCatalogServer(s, catalog.NewLimitedServer(server, limiter))
	pb.RegisterCatalogServer(s, catalog.NewLimitedService(health{}, limiter))
	pb.RegisterCatalogServer(s, catalog.NewLimitedService(server, limiter))

	pb.RegisterCatalogServer(s, server)             // want `\*catalog.Server is used as pb.CatalogServer without its rate limits; wrap it with catalog.NewLimitedServer`
	pb.RegisterCatalogServer(s, tenant{server, ""}) // want `tenant is used as pb.CatalogServer`
	pb.RegisterCatalogServer(s, health{})           // want `health is used as pb.CatalogServer without its rate limits; wrap it with catalog.NewLimitedService`
	s.RegisterService(nil, server)                  // as any: not found
	server.Get(context.Background(), nil)           // want `Get of \*catalog.Server is used without its rate limits; use what catalog.NewLimitedServer returns`
}
