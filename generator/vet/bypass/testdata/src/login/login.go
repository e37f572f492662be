// Package login uses a Sender. It calls no generated constructor, so nothing is reported here.
package login

import (
	"context"

	"sms"
	"twilio"
)

type Service struct{ sender sms.Sender }

func New(sender sms.Sender) *Service { return &Service{sender} }

func NewDefault() *Service { return New(twilio.New("")) }

func (s *Service) Start(ctx context.Context, phone string) error {
	return s.sender.SendCode(ctx, phone)
}
