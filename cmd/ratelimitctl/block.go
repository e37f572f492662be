package main

import (
	"context"
	"time"
)

// block refuses a key under the rules of a name. Of a further unnamed rule, such as pkg.Type.Method#2, the limiter blocks the key under
// all unnamed rules of the method.
func (t *tool) block(ctx context.Context, args []string, o options) error {
	if o.forTime == 0 {
		return misused("block: found no -for; expected one such as -for 1h")
	}
	requests, err := t.requests(ctx, args)
	if err != nil {
		return err
	}
	if err := t.limiter.Block(ctx, o.forTime, requests[0]); err != nil {
		return err
	}
	until := time.Now().Add(o.forTime)
	return t.print(map[string]time.Time{"until": until}, []string{"blocked until " + until.Format(time.DateTime)})
}

func (t *tool) unblock(ctx context.Context, args []string, _ options) error {
	requests, err := t.requests(ctx, args)
	if err != nil {
		return err
	}
	if err := t.limiter.Unblock(ctx, requests[0]); err != nil {
		return err
	}
	return t.print(map[string]bool{"blocked": false}, []string{"not blocked"})
}
