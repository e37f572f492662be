package x

import "context"

type Runs interface {
	//ratelimit:rule algorithm=concurrency limit=4 per=2s
	//                                                 ^ per: found 2s for calls that run; expected 3s or more, after which the permits of a dead process end
	A(ctx context.Context, a string) (n int, err error)
	//ratelimit:rule algorithm=concurrency limit=1001
	//                                           ^ limit: found 1001; expected 0 to 1000 for a concurrency rule
	B(ctx context.Context, a string) (n int, err error)
	//ratelimit:rule algorithm=concurrency limit=4 block=1m
	//                                                   ^ block: does not go with concurrency, whose permits may come back at any time; leave out block=
	C(ctx context.Context, a string) (n int, err error)
	//ratelimit:rule algorithm=concurrency limit=4 refund=error
	//                                                    ^ refund: does not go with concurrency, whose permits come back whenever the call ends; leave out refund=
	D(ctx context.Context, a string) (n int, err error)
	//ratelimit:rule algorithm=concurrency limit=4 lease=200ms
	//                                                   ^ lease: found a concurrency rule; expected a sliding-window, fixed-window, calendar or token-bucket
	E(ctx context.Context, a string) (n int, err error)
	//ratelimit:rule algorithm=concurrency limit=4 burst=5
	//                                                   ^ burst: found a concurrency rule; expected a token-bucket
	F(ctx context.Context, a string) (n int, err error)
	//ratelimit:rule algorithm=concurrency limit=4 mode=trigger
	//                                                  ^ mode: trigger needs a window of at least one permit that fills up; found a concurrency rule of 4
	G(ctx context.Context, a string) (n int, err error)
	//ratelimit:rule algorithm=concurrency limit=4 distinct="{a}"
	//                                                       ^ distinct: found a concurrency rule; expected a sliding-window or calendar
	H(ctx context.Context, a string) (n int, err error)
	//ratelimit:rule algorithm=concurrency limit=4 settle="n"
	//                                                     ^ settle= does not go with algorithm=concurrency: its permits come back when the call ends; leave out settle=
	I(ctx context.Context, a string) (n int, err error)
	//ratelimit:rule algorithm=concurrency limit=4 cron=@daily
	//                         ^ algorithm: found concurrency with cron, whose windows are the calendar's
	J(ctx context.Context, a string) (n int, err error)
}
