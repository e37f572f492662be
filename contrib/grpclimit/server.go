package grpclimit

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/httplimit"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// Option changes a server interceptor.
type Option func(*caller)

// caller finds out who calls.
type caller struct {
	clients httplimit.Clients
	user    func(context.Context) (string, error)

	jitter   float64               // of WithJitter
	calls    []*wrap.Keyed[string] // of WithRules
	messages []*wrap.Keyed[string] // of WithMessageRules
}

// WithClients sets how the client's address is found, for servers behind proxies and on Unix sockets. The header is read from the metadata of the
// call. Without this option the client is the other end of the connection.
func WithClients(clients httplimit.Clients) Option {
	return func(c *caller) { c.clients = clients }
}

// WithUserID sets the function that returns the user for userID(ctx). The function reads what your authentication has put into the context. It
// must not read metadata that nobody has checked. If it returns "", rules that need a user refuse the call with a *ratelimit.KeyError. If it
// returns an error, the call ends with the status of [Error], or with Unauthenticated if the error has none. WithUserID panics if the function
// is nil.
func WithUserID(user func(context.Context) (string, error)) Option {
	if user == nil {
		panic("grpclimit.WithUserID: the function is nil")
	}
	return func(c *caller) { c.user = user }
}

// WithJitter makes the RetryInfo of each refusal longer by a random part of up to share of its delay, and never shorter. Use it where many callers wait
// for the same moment: in a window that begins for all at once, all of them would come back in one second. The share is above 0 and at most 1. For
// example, with a share of 0.5 callers who are told to wait for 60 seconds come back after 60 to 90 seconds. WithJitter panics if the share is out of
// this range.
func WithJitter(share float64) Option {
	if !(share > 0 && share <= 1) { // also if it is no number
		panic(fmt.Sprintf("grpclimit.WithJitter: the share is %v; expected more than 0 and at most 1", share))
	}
	return func(c *caller) { c.jitter = share }
}

func newCaller(opts []Option) *caller {
	c := &caller{clients: httplimit.ClientIP()}
	for _, option := range opts {
		option(c)
	}
	return c
}

// context returns ctx with the client's address and the user. If there is no address, as on a Unix socket that is not trusted, there is no client IP.
func (c *caller) context(ctx context.Context) (context.Context, error) {
	if p, ok := peer.FromContext(ctx); ok && p.Addr != nil {
		values := func(name string) []string { return metadata.ValueFromIncomingContext(ctx, name) }
		if ip, err := c.clients.OfPeer(p.Addr.String(), values); err == nil {
			ctx = ratelimit.WithClientIP(ctx, ip)
		}
	}
	if c.user == nil {
		return ctx, nil
	}
	id, err := c.user(ctx)
	if err != nil {
		err = statusOf(err, c.jitter)
		if _, ok := status.FromError(err); !ok {
			err = status.Error(codes.Unauthenticated, "the caller is not known")
		}
		return nil, err
	}
	if id != "" {
		ctx = ratelimit.WithUserID(ctx, id)
	}
	return ctx, nil
}

// UnaryServerInterceptor returns an interceptor that puts the client's address and the user into the context, limits calls by the rules of
// [WithRules], and applies [Error] to the errors of handlers. Chain it after the interceptor that authenticates. Give all options to one
// interceptor: a second one does not know them.
func UnaryServerInterceptor(opts ...Option) grpc.UnaryServerInterceptor {
	c := newCaller(opts)
	return func(ctx context.Context, req any, call *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (reply any, err error) {
		if ctx, err = c.context(ctx); err != nil {
			return nil, err
		}
		err = within(ctx, c.calls, call.FullMethod, func() (err error) {
			reply, err = handle(ctx, req)
			return err
		})
		return reply, statusOf(err, c.jitter)
	}
}

// StreamServerInterceptor is [UnaryServerInterceptor] for streams. It also limits their messages by the rules of [WithMessageRules]. A service
// settles what a stream has cost by [ratelimit.ChargeFrom] of the stream's context, also when that context has ended: the Charge is that of
// the wrapper around the service.
func StreamServerInterceptor(opts ...Option) grpc.StreamServerInterceptor {
	c := newCaller(opts)
	return func(srv any, stream grpc.ServerStream, call *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
		ctx, err := c.context(stream.Context())
		if err != nil {
			return err
		}
		ctx, own := wrap.WithCharge(ctx)
		defer wrap.End(own)
		return statusOf(within(ctx, c.calls, call.FullMethod, func() error {
			return handle(srv, &serverStream{stream, ctx, call.FullMethod, c})
		}), c.jitter)
	}
}

type serverStream struct {
	grpc.ServerStream
	ctx    context.Context
	method string
	caller *caller
}

func (s *serverStream) Context() context.Context { return s.ctx }

// RecvMsg receives a message that has a permit of each rule. One that is refused is dropped.
func (s *serverStream) RecvMsg(message any) error {
	if err := s.ServerStream.RecvMsg(message); err != nil { // also at the end of the stream
		return err
	}
	for _, rules := range s.caller.messages {
		if _, err := take(s.ctx, rules, s.method); err != nil {
			return withStatus(err, s.caller.jitter)
		}
	}
	return nil
}
