// Command cli chooses a sender by its flags.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"sms"
	"twilio"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// dryRun prints instead of sending.
type dryRun struct{}

func (dryRun) SendCode(ctx context.Context, phone string) error { return nil }
func (dryRun) Close() error                                     { return nil }

type command struct {
	name string
	run  func(ctx context.Context, s sms.Sender, args []string) error
}

var commands = []command{
	{"send", func(ctx context.Context, s sms.Sender, args []string) error { return s.SendCode(ctx, args[0]) }},
	{"close", func(ctx context.Context, s sms.Sender, args []string) error { return s.Close() }},
}

func main() {
	provider := flag.String("provider", "twilio", "")
	dry := flag.Bool("n", false, "")
	flag.Parse()
	if err := run(context.Background(), *provider, *dry, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, provider string, dry bool, args []string) error {
	sender, err := open(provider)
	if err != nil {
		return err
	}
	defer sender.Close()
	sender = sms.NewLimitedSender(sender, ratelimit.New())
	for _, c := range commands {
		if c.name != args[0] {
			continue
		}
		if dry {
			return c.run(ctx, dryRun{}, args[1:]) // want `dryRun is used as sms.Sender`
		}
		if args[1] == "-dry" {
			return c.run(ctx, dryRun{}, args[1:]) //ratelimit:bare nothing is sent
		}
		return c.run(ctx, sender, args[1:])
	}
	return nil
}

func open(provider string) (sms.Sender, error) {
	switch provider {
	case "twilio":
		return twilio.Open(os.Getenv("TOKEN"))
	case "sms":
		return sms.NewGateway(os.Getenv("URL")), nil
	}
	return nil, fmt.Errorf("unknown provider %q", provider)
}
