// Package tested calls a generated constructor. Its tests use fakes.
package tested

import (
	"context"

	"sms"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

type Service struct{ sender sms.Sender }

func New(g *sms.Gateway, limiter *ratelimit.Limiter) *Service { // want g:"wrapped"
	return &Service{sms.NewLimitedSender(g, limiter)}
}

func newBare(g *sms.Gateway) *Service { return &Service{g} } // want `\*sms.Gateway is used`

func (s *Service) Run(ctx context.Context) error { return s.sender.SendCode(ctx, "1") }
