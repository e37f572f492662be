package x

import "context"

type X interface {
	//ratelimit:rule limit=1 per=1m warmup=1s
	//                                     ^ warmup: found a sliding-window; expected a token-bucket
	Warm() error
	//ratelimit:rule limit=1 per=1m lease=200ms
	//                                    ^ lease: the rule of line 11 has another lease, or none; write the same lease= on all rules of a method, or on none
	//ratelimit:rule key="{a}" limit=1 per=1m
	Leased(a string) error
	//ratelimit:rule limit=1 per=1m lease=200ms algorithm=leaky-bucket
	//                                    ^ lease: found a leaky-bucket; expected a sliding-window, fixed-window, calendar window or token-bucket
	Leaky(a string) error
	//ratelimit:rule limit=1 per=1m distinct="{a}" settle="n"
	//                                                     ^ settle= does not go with distinct=: each member counts once
	Settled(a string) (n int, err error)
	//ratelimit:rule limit=1 per=1m settle="m"
	//                                      ^ unknown name m; the parameter is a, the results are n, err
	Unknown(a string) (n int, err error)
	//ratelimit:rule limit=1 per=1m wait=5s
	//                                   ^ wait: a call has no context that could end the wait; add a parameter of type context.Context, or one with a method Context() context.Context
	Endless(phone string) error
	//ratelimit:rule limit=1 per=1m prepay
	//                              ^ prepay: found a sliding-window; expected a token-bucket or leaky-bucket
	Prepay() error
	//ratelimit:rule limit=1 per=1m algorithm=leaky-bucket queue=3
	//                                                           ^ queue: needs wait=: calls that do not wait cannot queue
	Queue() error
	//ratelimit:rule limit=10 per=1s algorithm=token-bucket warmup=2s wait=10s queue=1
	//                                                                               ^ queue: found warmup as well; expected a bucket whose calls wait for their own permits
	WarmQueue(context.Context) error
	//ratelimit:rule limit=10 per=1s algorithm=token-bucket prepay wait=10s queue=2
	//                                                                            ^ queue: found prepay as well; expected a bucket whose calls wait for their own permits
	PrepaidQueue(context.Context) error
	//ratelimit:rule limit=1 per=1m block=31d
	//                                    ^ block: found 31d; expected whole microseconds, up to 30d
	Block() error
	//ratelimit:rule limit=1 per=1m algorithm=sliding-counter slices=10_001
	//                                                               ^ slices: found 10001; expected 1 to 10000, each at least a microsecond long
	Slices() error
	//ratelimit:rule limit=1 per=1m mode=trigger wait=1s
	//                                                ^ wait: found mode=trigger, which delays no call
	Trigger(context.Context) error
	//ratelimit:rule limit=1 per=1m algorithm=token-bucket distinct="{a}"
	//                                                               ^ distinct: found a token-bucket; expected a sliding-window or calendar window
	Distinct(a string) error
	//ratelimit:rule limit=10 per=1m distinct="{a}" cost="len(a)"
	//                                                    ^ cost= does not go with distinct=: each member counts once. To exempt calls, write when=
	DistinctCost(a string) error
	//ratelimit:rule limit=10 per=1m distinct="{a}" cost=1
	//                                                   ^ cost= does not go with distinct=: each member counts once. To exempt calls, write when=
	DistinctOne(a string) error
	//ratelimit:rule limit=1 per=1m distinct="{a}:{c}"
	//                                             ^ unknown name c; the parameter is a
	Member(a string) error
	//ratelimit:rule limit="a" per=1m
	//                      ^ a number is needed here; this is a string
	Limit(a string) error
	//ratelimit:rule limit=1 per=1m scope=process mode=shadows refund=always on-error=retry
	//                                    ^ unknown scope "process"; expected fleet or instance
	//                                                 ^ unknown mode "shadows"; did you mean shadow?
	//                                                                ^ unknown refund "always"; expected never or error
	//                                                                                ^ unknown on-error "retry"; expected deny, allow or local
	Words() error
	//ratelimit:rule limit=1 cron="0 0 * *"
	//                             ^ cron: found 4 fields; expected 5, or 6 with seconds
	Fields() error
	//ratelimit:rule limit=1 cron="0 0 * * FUNDAY"
	//                             ^ cron: found "FUNDAY"; expected numbers, *, or the first three letters of a month or a day of the week
	Day() error
	//ratelimit:rule limit=1 cron="@Fortnightly"
	//                             ^ cron: unrecognized descriptor: @Fortnightly
	Descriptor() error
	//ratelimit:rule limit=1 cron=daily
	//                            ^ cron: found "daily"; expected 5 fields, 6 with seconds, or a word such as @daily
	Daily() error
	//ratelimit:rule limit=1 cron="0 0 L * *"
	//                             ^ cron: found "L"; the last day of a month cannot be written; with the day 1, windows end when a month does
	Last() error
	//ratelimit:rule limit=1 cron="0 0 15W * *"
	//                             ^ cron: found "15W"; the weekday next to a day cannot be written; expected the day itself, such as 15
	Near() error
	//ratelimit:rule limit=1 cron="0 0 LW * *"
	//                             ^ cron: found "LW"; the last day of a month cannot be written; with the day 1, windows end when a month does
	LastNear() error
	//ratelimit:rule key="{nope}" limit=1 per=1x
	//                     ^ unknown name nope; the method has no parameters
	//                                         ^ unknown unit "x" in "1x"; expected ns, us, ms, s, m, h, d or w
	Together() error
	//ratelimit:rule limit=1 per=1m burst=2 when="nope"
	//                                    ^ burst: found a sliding-window; expected a token-bucket
	//                                            ^ unknown name nope; the method has no parameters
	Both() error
	//ratelimit:rule limit={n} per=1m when="{n > 3}" cost={n}
	//                     ^ limit is "{n}"; expected an expression without the braces, which are for text
	//                                      ^ when is "{n > 3}"; expected an expression without the braces, which are for text
	//                                                    ^ cost is "{n}"; expected an expression without the braces, which are for text
	Braces(n int) error
}

//ratelimit:wrap tz=Europe/Berln
//                  ^ tz: unknown time zone "Europe/Berln"; expected an IANA name such as Europe/Berlin
type Zone interface {
	//ratelimit:rule limit=1 per=1m
	NoCron() error
}

//ratelimit:wrap tz=Local
//                  ^ tz: unknown time zone "Local"; expected an IANA name such as Europe/Berlin
type Local interface {
	//ratelimit:rule limit=1 cron=@daily
	Daily() error
}

//ratelimit:rule limit=1 per=1m wait=5s
//                                   ^ wait: a call has no context that could end the wait; add a parameter of type context.Context, or one with a method Context() context.Context (in A, B, which this rule covers)
type Waits interface {
	A() error
	B() error
	C(ctx context.Context) error
}
