package sms

import "context"

func testing() Sender {
	NewGateway().SendCode(context.Background(), "1")
	return &Gateway{}
}
