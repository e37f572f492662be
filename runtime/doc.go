// Package ratelimit decides whether a call may happen now. Wrappers that the ratelimit command generates ask it, and a program may
// ask it without any annotation:
//
//	limiter := ratelimit.New(memstore.New())
//	rule := ratelimit.Rule{Name: "login", Limit: 5, Per: time.Minute}
//	decision, err := limiter.Allow(ctx, ratelimit.Request{Rule: rule, Key: userID})
//
// A [Rule] says how many permits a subject has in a window of time. A [Limiter] decides calls, each under any number of rules: all
// are charged, or none. A [Store] keeps the counts: package memstore in this process, package redisstore on Redis, for all
// processes that share it. The store's clock is the only clock.
//
// # The model
//
// A rule answers one question: what is the first time at which so many permits fit, if nothing else is admitted before? A call is
// admitted if that is now for all its rules, or soon enough for those that let it wait. Otherwise it is refused, and the longest
// of those times is when to come back.
//
// # The algorithms
//
// [SlidingWindow] admits Limit permits in any span of Per. It keeps the time of each permit.
//
// [FixedWindow] opens a window at the first admitted call. Around the end of a window twice the limit may pass.
//
// [Calendar] counts from one time of a cron expression to the next, in a time zone.
//
// [TokenBucket] holds up to Burst permits and gains Limit of them in each Per. It is the generic cell rate algorithm of ITU-T
// I.371, which keeps one time: when the bucket is full again. With Prepay a call may take more than there is, and the next one
// waits for it; with Warmup the rate ramps up after idling, as in SmoothWarmingUp of Guava's RateLimiter.
//
// [LeakyBucket] is the same with a burst of one: calls leave evenly spaced.
//
// [SlidingCounter] is a sliding window whose permits are counted by slices of time. It never admits more than the limit, and
// remembers a permit for up to a slice longer than Per.
//
// The package is not for limiting how many calls run at one time: that is a semaphore's work.
package ratelimit
