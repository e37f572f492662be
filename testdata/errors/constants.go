package x

const none, some = 0, 5

type X interface {
	//ratelimit:rule limit=5 per=1m cost=6
	//                                   ^ cost: found 6, which is never admitted; expected at most 5
	Above() error
	//ratelimit:rule limit=5 per=1m algorithm=token-bucket burst=2 cost=3
	//                                                                  ^ cost: found 3, which is never admitted; expected at most 2
	Burst() error
	//ratelimit:rule limit=5 per=1m algorithm=leaky-bucket cost=2
	//                                                          ^ cost: found 2, but a leaky-bucket holds 1 permit and never admits more; expected prepay, or a token-bucket
	Leaky() error
	//ratelimit:rule limit=2 per=1m algorithm=token-bucket burst=5 cost=5
	UpToBurst() error
	//ratelimit:rule limit=2 per=1m algorithm=token-bucket prepay cost=5
	Prepaid() error
	//ratelimit:rule limit=2 per=1m algorithm=token-bucket warmup=1s cost=5
	Warm() error
	//ratelimit:rule limit=2 per=1m mode=trigger cost=5
	Trigger() error
	//ratelimit:rule limit=0 per=1m
	Closed() error
	//ratelimit:rule limit=5 per=1m cost="-1"
	//                                    ^ cost: this is always -1; expected at least 0
	Negative() error
	//ratelimit:rule limit=5 per=1m cost=-1
	//                                   ^ cost: this is always -1; expected at least 0
	NegativeNumber() error
	//ratelimit:rule limit=5 per=1m cost="1 - some"
	//                                    ^ cost: this is always -4; expected at least 0
	Computed() error
	//ratelimit:rule limit=5 per=1m settle="none - some"
	//                                      ^ settle: this is always -5, so no call is settled; expected at least 0
	Settled() error
	//ratelimit:rule limit=5 per=1m settle="none"
	Free() error
	//ratelimit:rule limit=5 per=1m cost="none" when="some > none"
	Parameter(none int) error
	//ratelimit:rule limit=5 per=1m when="false"
	//                                    ^ when: this is never true, so the rule never applies
	Never() error
	//ratelimit:rule limit=5 per=1m when="some < none"
	//                                    ^ when: this is never true, so the rule never applies
	Compared() error
}

//ratelimit:rule limit=5 per=1m when="some < none"
//                                    ^ when: this is never true, so the rule never applies (in A, B, which this rule covers)
type Y interface {
	A() error
	B() error
}
