// Package chat is a service whose streams cost tokens. Their number is known when a stream has ended.
package chat

import (
	"context"
	"io"
	"log/slog"
	"strings"

	"google.golang.org/grpc"

	"github.com/ratelimit-go/ratelimit/contrib/grpclimit/internal/chat/chatpb"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

//go:generate go tool ratelimit

// Service answers questions.
type Service struct {
	chatpb.UnimplementedChatServer

	Answer func(question string) []string // the tokens of an answer
}

// Ask charges the most tokens that the answer may have, and at the end what the client was sent, also if the client has gone.
//
//ratelimit:rule name=tokens key="{userID(ctx)}" limit=20000 per=1m cost="most(question)"
func (s *Service) Ask(question *chatpb.Question, stream grpc.ServerStreamingServer[chatpb.Token]) error {
	ctx, sent := stream.Context(), int64(0)
	defer func() {
		if err := ratelimit.ChargeFrom(ctx).Settle(ctx, sent); err != nil { // works although ctx has ended
			slog.ErrorContext(ctx, "a stream keeps costing its estimate", "err", err)
		}
	}()
	for _, text := range s.Answer(question.GetText()) {
		if err := stream.Send(&chatpb.Token{Text: text}); err != nil {
			return err // the client has gone
		}
		sent++
	}
	return nil
}

// most returns how many tokens the answer to a question may have.
func most(question *chatpb.Question) int64 {
	if n := question.GetMaxTokens(); n > 0 {
		return n
	}
	return 4096
}

// Talk answers each question of a stream by its first token.
func (s *Service) Talk(stream grpc.BidiStreamingServer[chatpb.Question, chatpb.Token]) error {
	for {
		question, err := stream.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err // a refusal, too
		}
		if err := stream.Send(&chatpb.Token{Text: s.Answer(question.GetText())[0]}); err != nil {
			return err
		}
	}
}

// Count returns how many words a question has.
func (s *Service) Count(_ context.Context, question *chatpb.Question) (*chatpb.Tokens, error) {
	return &chatpb.Tokens{Count: int64(len(strings.Fields(question.GetText())))}, nil
}
