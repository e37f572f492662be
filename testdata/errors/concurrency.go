package x

import "context"

type Runs interface {
	//ratelimit:rule algorithm=concurrency limit=4 per=2s
	//                                                 ^ per: found 2s; expected 3s or more for a concurrency rule
	A(ctx context.Context, a string) (n int, err error)
	//ratelimit:rule algorithm=concurrency limit=1001
	//                                           ^ limit: found 1001; expected 0 to 1000 for a concurrency rule
	B(ctx context.Context, a string) (n int, err error)
	//ratelimit:rule algorithm=concurrency limit=4 block=1m
	//                                                   ^ block: does not go with a concurrency rule, whose permits come back when calls end
	C(ctx context.Context, a string) (n int, err error)
	//ratelimit:rule algorithm=concurrency limit=4 refund=error
	//                                                    ^ refund: does not go with a concurrency rule, whose permits come back when calls end
	D(ctx context.Context, a string) (n int, err error)
	//ratelimit:rule algorithm=concurrency limit=4 lease=200ms
	//                                                   ^ lease: does not go with a concurrency rule, whose permits come back when calls end
	E(ctx context.Context, a string) (n int, err error)
	//ratelimit:rule algorithm=concurrency limit=4 burst=5
	//                                                   ^ burst: found a concurrency rule; expected a token-bucket
	F(ctx context.Context, a string) (n int, err error)
	//ratelimit:rule algorithm=concurrency limit=4 mode=trigger
	//                                                  ^ mode: trigger needs a window of at least one permit that fills up; found a concurrency rule of 4
	G(ctx context.Context, a string) (n int, err error)
	//ratelimit:rule algorithm=concurrency limit=4 distinct="{a}"
	//                                                       ^ distinct: found a concurrency rule; expected a sliding-window or calendar window
	H(ctx context.Context, a string) (n int, err error)
	//ratelimit:rule algorithm=concurrency limit=4 settle="n"
	//                                                     ^ settle: does not go with a concurrency rule, whose permits come back when calls end
	I(ctx context.Context, a string) (n int, err error)
	//ratelimit:rule algorithm=concurrency limit=4 cron=@daily
	//                         ^ algorithm: found concurrency with cron, whose windows are the calendar's
	J(ctx context.Context, a string) (n int, err error)
}
