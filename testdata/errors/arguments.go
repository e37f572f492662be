package x

type X interface {
	//ratelimit:rule limit=1 per=1m cron=@daily
	//                                   ^ cron: found per as well; expected one of the two
	Both() error
	//ratelimit:rule limit=1
	//          ^ per: a rule needs a window: per=1m, cron= for calendar times, or every= with an anchor
	Neither() error
	//ratelimit:rule per=1m
	//          ^ a rule needs limit=, the permits per window
	NoLimit() error
	//ratelimit:rule limit=-1 per=1m
	//                     ^ limit: found -1, which only a limit that comes with a call can be, as in limit="plan.Limit"; remove the rule, or use mode=shadow, which refuses no call
	Negative() error
	//ratelimit:rule limit=1 per=1m burst=5
	//                                    ^ burst: found a sliding-window; expected a token-bucket
	Burst() error
	//ratelimit:rule limit=1 cron="0 0 0 1 1 ? 2030"
	//                             ^ cron: found 7 fields; leave out the year: "0 0 0 1 1 ?"
	Year() error
	//ratelimit:rule limit=1 cron=@daily tz=Mars/Olympus
	//                                      ^ tz: unknown time zone "Mars/Olympus"; expected an IANA name such as Europe/Berlin
	Zone() error
	//ratelimit:rule limit=1 per=1m algorithm=calendar
	//                                        ^ algorithm: calendar needs cron or every, which say when its windows end
	Calendar() error
	//ratelimit:rule limit=1 per=1m ky="{a}"
	//                              ^ unknown argument "ky"; did you mean key?
	Typo(a string) error
	//ratelimit:rule limit=1 per=1m when=a == "b"
	//                                     ^ missing name before =; expected name=value, and a value with spaces in quotes
	Spaces(a string) error
}

//ratelimit:wrap tz=Mars/Olympus
//                  ^ tz: unknown time zone "Mars/Olympus"; expected an IANA name such as Europe/Berlin
type Y interface {
	//ratelimit:rule limit=1 cron=@daily
	M() error
}

//ratelimit:wrap prefix="a b"
//                        ^ unexpected ' ' in prefix; expected letters, digits and . _ - /
type Z interface {
	//ratelimit:rule limit=1 per=1m
	M() error
}
