// Command injection passes what constructors return to constructors.
package main

import (
	"context"
	"log"

	"login"
	"sms"
	"twilio"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

var _ sms.Sender = (*twilio.Client)(nil) // an assertion, which uses no value

// app holds the parts of the program.
type app struct {
	sender sms.Sender
	spare  sms.Sender
	login  *login.Service
	admin  *login.Service
}

func main() {
	limiter := ratelimit.New()
	gateway := sms.NewGateway("https://sms.example")
	defer gateway.Close()
	limited := sms.NewLimitedSender(gateway, limiter)

	a := &app{sender: limited, login: login.New(limited)}
	a.admin = login.New(gateway) // want `\*sms.Gateway is used as sms.Sender without its rate limits; wrap it with sms.NewLimitedSender`
	a.spare = gateway            // want `\*sms.Gateway is used as sms.Sender`
	b := app{
		sender: twilio.New(""), // want `\*twilio.Client is used as sms.Sender without`
		login:  login.New(sms.NewLimitedSender(twilio.New(""), limiter)),
	}
	c := app{limited, gateway, nil, nil}  // want `\*sms.Gateway is used`
	b.sender, c.sender = limited, gateway // want `\*sms.Gateway is used`
	b.sender = nil

	login.New(sms.Sender(gateway)) // want `\*sms.Gateway is used`
	login.New(operator{gateway})   // want `operator is used as sms.Sender`

	client, err := twilio.Open("")
	if err != nil {
		log.Fatal(err)
	}
	login.New(client) // want `\*twilio.Client is used`

	var sender sms.Sender
	if sender, err = twilio.Open(""); err != nil { // want `\*twilio.Client is used`
		log.Fatal(err)
	}
	use(sender)
	use(provided())
	use(sms.Sender(limited))
	must(login.New(limited).Start(context.Background(), "1"))
}

// operator has the methods of the embedded type.
type operator struct{ *sms.Gateway }

func use(sms.Sender) {}

func must(error) {}

func provided() sms.Sender {
	return sms.NewGateway("") // want `\*sms.Gateway is used`
}

func named() (s sms.Sender, err error) {
	s = twilio.New("") // want `\*twilio.Client is used`
	return
}

func both() (sms.Sender, error) {
	return twilio.Open("") // want `\*twilio.Client is used`
}
