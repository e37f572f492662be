package shop

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"example.com/shop/catalogpb"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
)

// connect serves a service on a loopback port and returns a client of it.
func connect(t *testing.T, service catalogpb.CatalogServer) catalogpb.CatalogClient {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	catalogpb.RegisterCatalogServer(server, service)
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return catalogpb.NewCatalogClient(conn)
}

func get(t *testing.T, client catalogpb.CatalogClient, id string) error {
	t.Helper()
	item, err := client.Get(t.Context(), &catalogpb.GetRequest{Id: id}, grpc.WaitForReady(true))
	if err == nil && item.GetId() != id {
		t.Errorf("asked for %s, got %s", id, item.GetId())
	}
	return err
}

func requireRefused(t *testing.T, err error) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), "Too many requests") {
		t.Errorf("got %v, want a refusal", err)
	}
}

// TestInterface limits whatever implements the generated interface.
func TestInterface(t *testing.T) {
	limited := NewLimitedCatalogServer(&Server{}, ratelimit.New(memstore.New()))
	client := connect(t, limited)
	for range 3 {
		if err := get(t, client, "a"); err != nil {
			t.Fatal(err)
		}
	}
	requireRefused(t, get(t, client, "a"))
	stream, err := client.List(t.Context(), &catalogpb.ListRequest{})
	if err == nil {
		_, err = stream.Recv()
	}
	requireRefused(t, err) // and not that List is not implemented
	if !limittest.IsLimited(limited) {
		t.Error("the wrapper is not known to be one")
	}
}

// TestStruct limits an implementation, and leaves its other methods as they are.
func TestStruct(t *testing.T) {
	client := connect(t, NewLimitedServer(&Server{}, ratelimit.New(memstore.New())))
	if err := get(t, client, "a"); err != nil {
		t.Fatal(err)
	}
	requireRefused(t, get(t, client, "a"))
	if err := get(t, client, "b"); err != nil {
		t.Error(err)
	}
}

// TestClient limits what calls the service.
func TestClient(t *testing.T) {
	client := NewLimitedCatalogClient(connect(t, &Server{}), ratelimit.New(memstore.New()))
	for range 2 {
		if err := get(t, client, "a"); err != nil {
			t.Fatal(err)
		}
	}
	requireRefused(t, get(t, client, "a"))
	var _ catalogpb.CatalogClient = client
	if _, err := client.List(context.Background(), &catalogpb.ListRequest{}); err == nil {
		t.Error("List is not limited")
	}
}

// three is a service that lists three items.
type three struct {
	catalogpb.UnimplementedCatalogServer
}

func (three) List(_ *catalogpb.ListRequest, stream grpc.ServerStreamingServer[catalogpb.Item]) error {
	for _, id := range []string{"a", "b", "c"} {
		if err := stream.Send(&catalogpb.Item{Id: id}); err != nil {
			return err
		}
	}
	return nil
}

// slow is a service whose items have a limit. It notes the error of the one that it cannot send.
type slow struct {
	catalogpb.UnimplementedCatalogServer
	limiter *ratelimit.Limiter
	failed  chan error
}

// ofAnn is a stream whose context says who the user is.
type ofAnn struct {
	grpc.ServerStreamingServer[catalogpb.Item]
}

func (s ofAnn) Context() context.Context {
	return ratelimit.WithUserID(s.ServerStreamingServer.Context(), "ann")
}

func (s slow) List(request *catalogpb.ListRequest, stream grpc.ServerStreamingServer[catalogpb.Item]) error {
	err := three{}.List(request, limitedItems{stream, NewLimitedItems(ofAnn{stream}, s.limiter)})
	s.failed <- err
	return err
}

// limitedItems is a stream that sends items through their wrapper.
type limitedItems struct {
	grpc.ServerStreamingServer[catalogpb.Item]
	items *LimitedItems
}

func (s limitedItems) Send(item *catalogpb.Item) error { return s.items.Send(item) }

// TestMessagesOfAStream limits the items of a user. The third one waits until the stream ends.
func TestMessagesOfAStream(t *testing.T) {
	service := slow{limiter: ratelimit.New(memstore.New()), failed: make(chan error, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := connect(t, service).List(ctx, &catalogpb.ListRequest{}, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if err := <-service.failed; !errors.Is(err, context.Canceled) {
		t.Errorf("the third item: %v, expected the end of the stream", err)
	}
}

// TestSettleAfterAStream charges a stream what it has sent, although the context of the stream has ended.
func TestSettleAfterAStream(t *testing.T) {
	limiter := ratelimit.New(memstore.New())
	client := NewLimitedLister(connect(t, three{}), limiter)
	ctx, charge := ratelimit.WithCharge(t.Context())
	ctx, cancel := context.WithCancel(ctx)
	stream, err := client.List(ctx, &catalogpb.ListRequest{}, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	items := int64(0)
	for {
		if _, err = stream.Recv(); err != nil {
			break
		}
		items++
	}
	cancel()
	if err != io.EOF || items != 3 {
		t.Fatalf("the stream ended after %d items with %v", items, err)
	}
	for range 2 {
		if err := charge.Settle(ctx, items); err != nil {
			t.Fatal(err)
		}
	}
	d, err := limiter.Peek(t.Context(), ratelimit.Request{Rule: ListerRules()[0]})
	if err != nil || d.Quotas[0].Remaining != 97 {
		t.Errorf("got %+v, error %v; want 97 items left", d, err)
	}
}
