package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

const (
	ann    = "+8613800138000"
	office = "203.0.113.7"
	cafe   = "198.51.100.23"
)

// story makes calls and prints their results.
type story struct {
	out    io.Writer
	sender Sender
	now    func() time.Time
}

func (s *story) secondCode() {
	s.title("A second code at once is too early.")
	s.send(ann, office)
	s.send(ann, office)
}

func (s *story) nextMinute(pass func(time.Duration)) {
	s.title("The minute is a sliding one, and exact to the microsecond.")
	pass(time.Minute - time.Microsecond)
	s.send(ann, office)
	pass(time.Microsecond)
	s.send(ann, office)
}

func (s *story) tenADay(pass func(time.Duration)) {
	s.title("Ten codes a day: after eight more it is over until midnight in Shanghai.")
	passed := 0
	for range 8 {
		pass(time.Minute)
		if s.try(ann, office) == nil {
			passed++
		}
	}
	s.line("8 calls in 8 minutes: %d sent", passed)
	pass(time.Minute)
	refusal := s.send(ann, office)
	if refusal == nil {
		return
	}
	pass(refusal.RetryAfter)
	s.send(ann, office)
}

func (s *story) oneAddress() {
	s.title("A hundred codes an hour for one address, whatever the phones.")
	passed := 0
	for i := range 100 {
		if s.try(phone(i), cafe) == nil {
			passed++
		}
	}
	s.line("100 phones from %s: %d sent", cafe, passed)
	s.send(phone(100), cafe)
	s.title("That refusal took nothing: the same phone gets its code elsewhere, at once.")
	s.send(phone(100), office)
}

func (s *story) noAddress() {
	s.title("A call that cannot be counted is not made.")
	s.send(phone(101), "")
}

func phone(i int) string { return fmt.Sprintf("+86139%08d", i) }

// send makes one call, prints it, and returns its refusal.
func (s *story) send(phone, ip string) *ratelimit.TooManyRequestsError {
	err := s.try(phone, ip)
	call := phone + " from " + ip
	if err == nil {
		s.line("%s: sent", call)
		return nil
	}
	if refusal, ok := errors.AsType[*ratelimit.TooManyRequestsError](err); ok {
		s.line("%s: refused: %s Retry after %s.", call, refusal.Message, refusal.RetryAfter)
		for _, v := range refusal.Violations {
			fmt.Fprintf(s.out, "          %s\n", v)
		}
		return refusal
	}
	s.line("%s: %s", phone, err)
	return nil
}

// try makes one call.
func (s *story) try(phone, ip string) error {
	ctx := context.Background()
	if ip != "" {
		ctx = ratelimit.WithClientIP(ctx, ip)
	}
	return s.sender.SendCode(ctx, phone)
}

func (s *story) title(text string) { fmt.Fprintf(s.out, "\n%s\n", text) }

func (s *story) line(format string, args ...any) {
	fmt.Fprintf(s.out, "%s  %s\n", s.now().Format("15:04:05.999999"), fmt.Sprintf(format, args...))
}
