package tested_test

import (
	"testing"

	"sms"
)

func TestExternal(t *testing.T) {
	var s sms.Sender = sms.NewGateway("")
	sms.NewLimitedSender(s, nil)
}
