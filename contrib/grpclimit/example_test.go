package grpclimit_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/ratelimit-go/ratelimit/contrib/grpclimit"
	"github.com/ratelimit-go/ratelimit/contrib/grpclimit/internal/chat"
	"github.com/ratelimit-go/ratelimit/contrib/grpclimit/internal/chat/chatpb"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
)

// userOf returns the user of a call, in place of authentication.
func userOf(ctx context.Context) (string, error) {
	return strings.Join(metadata.ValueFromIncomingContext(ctx, "user"), ""), nil
}

// dialChat serves the service on a port of this machine, and returns a client of it.
func dialChat(service chatpb.ChatServer, options ...grpclimit.Option) (client chatpb.ChatClient, stop func()) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	server := grpc.NewServer(
		grpc.UnaryInterceptor(grpclimit.UnaryServerInterceptor(options...)), grpc.StreamInterceptor(grpclimit.StreamServerInterceptor(options...)))
	chatpb.RegisterChatServer(server, service)
	go func() { _ = server.Serve(listener) }()
	connection, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(grpclimit.UnaryClientInterceptor()), grpc.WithStreamInterceptor(grpclimit.StreamClientInterceptor()))
	if err != nil {
		panic(err)
	}
	return chatpb.NewChatClient(connection), func() {
		_ = connection.Close()
		server.GracefulStop()
	}
}

// Each user may make two calls a minute, without any directive. Count is free, as health checks should be.
func ExampleWithRules() {
	limiter := ratelimit.New(memstore.New())
	key := func(ctx context.Context, method string) (string, error) {
		if method == chatpb.Chat_Count_FullMethodName {
			return "", grpclimit.SkipRules
		}
		return grpclimit.UserID(ctx, method)
	}
	client, stop := dialChat(chat.NewLimitedService(&chat.Service{Answer: strings.Fields}, limiter), grpclimit.WithUserID(userOf),
		grpclimit.WithRules(limiter, key, []ratelimit.Rule{{Name: "calls", Limit: 2, Per: time.Minute, Message: "Two calls a minute."}}))
	defer stop()

	ctx := metadata.AppendToOutgoingContext(context.Background(), "user", "ann")
	for range 3 {
		_, err := client.Count(ctx, &chatpb.Question{})
		stream, _ := client.Ask(ctx, &chatpb.Question{Text: "hello"})
		_, refused := stream.Recv()
		fmt.Println(err, status.Code(refused), errors.Is(refused, ratelimit.ErrTooManyRequests))
	}
	// Output:
	// <nil> OK false
	// <nil> OK false
	// <nil> ResourceExhausted true
}

// Each user may send two messages a minute, in all streams together. The third one ends its stream.
func ExampleWithMessageRules() {
	limiter := ratelimit.New(memstore.New())
	client, stop := dialChat(&chat.Service{Answer: strings.Fields}, grpclimit.WithUserID(userOf), grpclimit.WithMessageRules(
		limiter, grpclimit.UserID, []ratelimit.Rule{{Name: "messages", Limit: 2, Per: time.Minute}}))
	defer stop()

	stream, err := client.Talk(metadata.AppendToOutgoingContext(context.Background(), "user", "ann"))
	if err != nil {
		panic(err)
	}
	for _, text := range []string{"one", "two", "three"} {
		_ = stream.Send(&chatpb.Question{Text: text})
		token, err := stream.Recv()
		fmt.Println(token.GetText(), status.Code(err))
	}
	// Output:
	// one OK
	// two OK
	//  ResourceExhausted
}

// A stream of a language model is charged the most tokens that its answer may have. At its end it is settled to what was sent. The service is annotated:
//
//	//ratelimit:rule name=tokens key="{userID(ctx)}" limit=20000 per=1m cost="most(question)"
//	func (s *Service) Ask(question *chatpb.Question, stream grpc.ServerStreamingServer[chatpb.Token]) error {
//		ctx, sent := stream.Context(), int64(0)
//		defer func() {
//			if err := ratelimit.ChargeFrom(ctx).Settle(ctx, sent); err != nil { // works although ctx has ended
//				slog.ErrorContext(ctx, "a stream keeps costing its estimate", "err", err)
//			}
//		}()
//		for _, text := range s.Answer(question.GetText()) {
//			if err := stream.Send(&chatpb.Token{Text: text}); err != nil {
//				return err // the client has gone
//			}
//			sent++
//		}
//		return nil
//	}
func ExampleStreamServerInterceptor() {
	limiter := ratelimit.New(memstore.New())
	client, stop := dialChat(chat.NewLimitedService(&chat.Service{Answer: strings.Fields}, limiter), grpclimit.WithUserID(userOf))

	ctx := metadata.AppendToOutgoingContext(context.Background(), "user", "ann")
	for range 3 { // without settlements the third answer would not fit into 20,000
		stream, err := client.Ask(ctx, &chatpb.Question{Text: "Is it on?", MaxTokens: 9000})
		if err != nil {
			fmt.Println(err)
			continue
		}
		for err == nil {
			_, err = stream.Recv()
		}
		fmt.Println(err)
	}
	stop()
	left, err := limiter.Peek(ctx, ratelimit.Request{Rule: chat.ServiceRules()[0], Key: "ann"})
	fmt.Println(left.Quotas[0].Remaining, err)
	// Output:
	// EOF
	// EOF
	// EOF
	// 19991 <nil>
}
