package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/breaker"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/probe"
)

// Nobody sends a command or its clone twice, or with another client than the one it is for.
func TestCloneOfACmd(t *testing.T) {
	by := redis.NewClient(&redis.Options{})
	c := Cmd{redis.NewCmd(t.Context(), "get", "k"), by}
	for _, cmd := range []redis.Cmder{c, c.Clone(), c.Clone().Clone()} {
		if own, ok := cmd.(Cmd); !ok || !cmd.NoRetry() || own.By != by || !slices.Equal(cmd.Args(), c.Args()) {
			t.Errorf("got %+v", cmd)
		}
	}
}

// The time of one command may end. Calls that are told of it later do not take that for the end of their own time, and hear the truth of the server.
func TestEndedTimeOfAnother(t *testing.T) {
	const late, away = "the server did not answer in time: ", "the server cannot be reached: "
	ended, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	_, dialed := new(net.Dialer).DialContext(ended, "tcp", "127.0.0.1:1")
	for err, want := range map[error]string{
		context.DeadlineExceeded:                            late,
		fmt.Errorf("no turn: %w", ended.Err()):              late,
		dialed:                                              late, // as by a server that hangs, whose queue of new connections is full
		&net.OpError{Op: "read", Err: ended.Err()}:          late,
		&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}: away,
	} {
		s := New("servers.New", redis.NewClient(&redis.Options{}))
		b := breaker.New(time.Hour, nil)
		for range 3 {
			_ = b.Ask(ended, func() error { return err })
			_ = b.Try(ended, func() error { return err })
		}
		_, untried := b.Begin(t.Context())
		for name, told := range map[string]error{
			"not tried":                untried,
			"sent by a call":           s.Unsent(t.Context(), untried, nil),
			"sent by a call, too late": s.Unsent(ended, untried, err),
			"no connection":            s.Unsent(t.Context(), err, nil),
			"ended":                    s.Unsent(ended, context.DeadlineExceeded, err),
		} {
			told = probe.Reason(s.Client, told)
			if !strings.HasPrefix(told.Error(), want) || errors.Is(told, context.DeadlineExceeded) {
				t.Errorf("%v, %s: told %v", err, name, told)
			}
		}
		if got := probe.Reason(s.Client, err); !strings.HasPrefix(got.Error(), want) {
			t.Errorf("%v: got %v, want %s", err, got, want)
		}
	}
}
