package x

import (
	"context"
	"time"
)

type Customer struct {
	ID    string
	Since time.Time
	Paid  int64
	Extra any
}

func billed(id string) (string, error) { return id, nil }

type Every interface {
	//ratelimit:rule key={id} limit=1 every=1mo
	//                                      ^ every= needs anchor=, a time of the key's own, as in anchor="user.BilledSince"; for windows that are the same for all, write cron=
	NoAnchor(id string) error
	//ratelimit:rule key={id} limit=1 per=1m anchor=since
	//                                              ^ anchor= needs every=, whose windows count from it, as in every=1mo
	NoEvery(id string, since time.Time) error
	//ratelimit:rule key={id} limit=1 cron=@monthly anchor=since
	//                                                     ^ anchor= needs every=, whose windows count from it, as in every=1mo
	Cron(id string, since time.Time) error
	//ratelimit:rule key={id} limit=1 per=1m every=1mo anchor=since
	//                                             ^ every: found per as well; expected one of the two
	PerToo(id string, since time.Time) error
	//ratelimit:rule key={id} limit=1 cron=@daily every=1mo anchor=since
	//                                                  ^ every: found cron as well; expected one of the two
	CronToo(id string, since time.Time) error
	//ratelimit:rule key={id} limit=1 every=1m anchor=since
	//                                      ^ every: found "1m"; expected 1d to 366d, 1w to 52w, 1mo to 12mo or 1y to 10y; a month is 1mo, and for minutes write per=1m
	Minute(id string, since time.Time) error
	//ratelimit:rule key={id} limit=1 every=1d algorithm=token-bucket anchor=since
	//                                                   ^ algorithm: found token-bucket with every, whose windows are the calendar's
	Bucket(id string, since time.Time) error
	//ratelimit:rule key={id} limit=1 every=1d algorithm=sliding-window anchor=since
	//                                                   ^ algorithm: found sliding-window with every, whose windows are the calendar's
	Sliding(id string, since time.Time) error
	//ratelimit:rule key={id} limit=1 cron=@daily algorithm=sliding-window
	//                                                      ^ algorithm: found sliding-window with cron, whose windows are the calendar's
	SlidingCron(id string) error
	//ratelimit:rule key={id} limit=1 every=1d tz=Mars/Olympus anchor=since
	//                                            ^ tz: unknown time zone "Mars/Olympus"; expected an IANA name such as Europe/Berlin
	Zone(id string, since time.Time) error
	//ratelimit:rule key={id} limit=1 every=1d anchor=id
	//                                                ^ a time.Time is needed here; this is a string: write a field of that type, date('2026-01-31') or a function of yours
	Text(id string) error
	//ratelimit:rule key={c.ID} limit=1 every=1d anchor=c.Paid
	//                                                  ^ a time.Time is needed here; this is an int64: write a field of that type, date('2026-01-31') or a function of yours
	Number(c *Customer) error
	//ratelimit:rule key={c.ID} limit=1 every=1d anchor=c.Extra
	//                                                  ^ c.Extra may be of any type here; write func extra(c *Customer) (time.Time, error) in this package, and call it here
	Any(c *Customer) error
	//ratelimit:rule key={id} limit=1 every=1d anchor=billed(id)
	//                                                ^ a time.Time is needed here; this is a string: write a field of that type, date('2026-01-31') or a function of yours
	Func(id string) error
	//ratelimit:rule key={id} limit=1 every=1d anchor=2026-01-31
	//                                                ^ a time.Time is needed here; this is an int: write a field of that type, date('2026-01-31') or a function of yours
	Date(id string) error
	//ratelimit:rule key={id} limit=1 every=1d anchor="date('31.01.2026')"
	//                                                      ^ found "31.01.2026"; expected a date such as 2006-01-02 or 2006-01-02T15:04:05Z
	Dotted(id string) error
	//ratelimit:rule key={id} limit=1 every=1d anchor="date('2026-02-30')"
	//                                                      ^ found "2026-02-30"; expected a date such as 2006-01-02 or 2006-01-02T15:04:05Z
	NoDay(id string) error
	//ratelimit:rule key={id} limit=1 every=1d when="since > date('yesterday')" anchor=since
	//                                                            ^ found "yesterday"; expected a date such as 2006-01-02 or 2006-01-02T15:04:05Z
	Condition(id string, since time.Time) error
	//ratelimit:rule key={id} limit=1 every=1d anchor=nil
	//                                                ^ a time.Time is needed here; this is nil: write a field of that type, date('2026-01-31') or a function of yours
	Nil(id string) error
	//ratelimit:rule key={id} limit=1 every=1d anchor=sinc
	//                                                ^ unknown name sinc; did you mean since? the parameters are ctx, id, since
	Unknown(ctx context.Context, id string, since time.Time) error
	//ratelimit:rule key={id} limit=1 every=1d pause="retryAfter(err)" anchor=since
	//                                                ^ pause: does not go with a calendar window, which ends at a time of its own
	Pause(id string, since time.Time) (err error)
}
