// Command forgotten has no limiter.
package main

import (
	"context"

	"login"
	"sms"
	"twilio"
)

func main() {
	login.New(twilio.New("")).Start(context.Background(), "1") // want `\*twilio.Client is used as sms.Sender without its rate limits; wrap it with sms.NewLimitedSender`
	login.New(sms.Open(""))                                    // want `sms.Open returns a bare sms.Sender; wrap it with sms.NewLimitedSender`
	login.NewDefault()                                         // converts in its own package: not found
}
