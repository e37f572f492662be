// Command handedout has implementations whose methods hand out values, which the wrapper limits.
package main

import (
	"context"

	"sms"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

type store interface { // want store:"limits Save, WithTx, WithinTx"
	//ratelimit:rule limit=1 per=1m
	Save(ctx context.Context) error
	WithTx(tx int) store
	WithinTx(do func(store) error) error
	Sender() sms.Sender // of another package, so the wrapper leaves it bare
}

type db struct{ tx int }

func (*db) Save(ctx context.Context) error { return nil }

func (d *db) WithTx(tx int) (s store) {
	if s = d; tx > 0 {
		return &db{tx}
	}
	return
}

func (d *db) WithinTx(do func(store) error) error {
	if err := other(d); err != nil { // want `\*db is used as store without its rate limits; wrap it with newLimitedStore`
		return err
	}
	return do(d)
}

func (d *db) Clone() store { return d } // want `\*db is used as store without its rate limits; wrap it with newLimitedStore`

func (d *db) Sender() sms.Sender { return &sms.Gateway{} } // want `\*sms.Gateway is used as sms.Sender without its rate limits; wrap it with sms.NewLimitedSender`

func other(store) error { return nil }

func main() {
	_ = newLimitedStore(&db{}, ratelimit.New()).WithTx(1)
}
