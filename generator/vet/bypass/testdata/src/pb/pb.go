// Package pb is like what protoc-gen-go-grpc generates.
package pb

import (
	"context"

	"google.golang.org/grpc"
)

type GetRequest struct{}

type CatalogServer interface {
	Get(context.Context, *GetRequest) (*GetRequest, error)
	mustEmbedUnimplementedCatalogServer()
}

type UnsafeCatalogServer interface{ mustEmbedUnimplementedCatalogServer() }

type UnimplementedCatalogServer struct{}

func (UnimplementedCatalogServer) Get(context.Context, *GetRequest) (*GetRequest, error) {
	return nil, nil
}
func (UnimplementedCatalogServer) mustEmbedUnimplementedCatalogServer() {}

func RegisterCatalogServer(s grpc.ServiceRegistrar, srv CatalogServer) { s.RegisterService(nil, srv) }

type CatalogClient interface {
	Get(context.Context, *GetRequest) (*GetRequest, error)
}

type catalogClient struct{}

func (catalogClient) Get(context.Context, *GetRequest) (*GetRequest, error) { return nil, nil }

func NewCatalogClient() CatalogClient { return catalogClient{} }
