package tested

import (
	"context"
	"testing"

	"sms"
)

type fake struct{ sent []string }

func (f *fake) SendCode(ctx context.Context, phone string) error {
	f.sent = append(f.sent, phone)
	return nil
}
func (*fake) Close() error { return nil }

func TestRun(t *testing.T) {
	s := &Service{sender: &fake{}}
	var other sms.Sender = &fake{}
	twice := sms.NewLimitedSender(sms.NewLimitedSender(other, nil), nil)
	_ = twice
	s.Run(context.Background())
}
