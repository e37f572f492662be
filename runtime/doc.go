// Package ratelimit decides whether a call may happen now. Wrappers that the ratelimit command generates ask it, and a program may
// ask it without any annotation:
//
//	limiter := ratelimit.New(memstore.New())
//	rule := ratelimit.Rule{Name: "login", Limit: 5, Per: time.Minute}
//	decision, err := limiter.Allow(ctx, ratelimit.Request{Rule: rule, Key: userID})
//
// A [Rule] says how many permits a subject has in a window of time. The subject is whom the permits belong to: a user, an address, or
// everybody. A call takes one permit of each of its rules, or as many as its cost. A [Limiter] decides calls, each under any number of
// rules: all are charged, or none. A [Store] keeps the counts: package memstore in this process, package redisstore on Redis for all
// processes that share it. The store's clock is the only clock.
//
// [Limiter.Allow] refuses at once what does not fit, [Limiter.Wait] sleeps until it fits, and [Limiter.Peek] only looks. What they
// return can be given back with [Decision.Refund], or corrected with [Decision.Settle] when the cost is known only after the call.
//
// The package does not limit how many calls run at one time: that is a semaphore's work.
//
// # The model
//
// A rule answers one question: what is the first time at which so many permits fit, if nothing else is admitted before? A call is
// admitted if that time is now for all its rules, or soon enough for those that let it wait. Otherwise it is refused, nothing is
// charged, and the longest of those times is when to come back: RetryAfter.
//
// All times are whole microseconds, and all arithmetic is on integers. A changed limit applies to what has been used already. A step
// back of the store's clock never admits more than the limit.
//
// # The algorithms
//
// [SlidingWindow] admits at most Limit permits in any span of Per, exactly. It writes down the time of each permit, so its state grows
// with the limit: about 8 bytes for each permit. It is the sliding log of the literature. RetryAfter is the time at which enough of the
// oldest permits have left the window.
//
// [FixedWindow] counts the permits of one window. The first admitted call opens it, and it lasts for Per. Its state is one number,
// whatever the limit. Around the end of a window up to twice the limit may pass within a moment: Limit at the end of one, and Limit at
// the start of the next.
//
// [Calendar] is a FixedWindow that begins and ends when a cron expression fires in a time zone: at midnight in Tokyo, on the first of a
// month. A day on which clocks are put forward has 23 hours. Around the end of a window twice the limit may pass here, too. The expressions
// are those of github.com/robfig/cron.
//
// [TokenBucket] holds up to Burst permits and gains Limit of them in each Per, evenly spread. It is the generic cell rate algorithm of
// ITU-T Recommendation I.371, which needs one number only: the time at which the bucket is full again. A call of n permits moves that
// time by n*Per/Limit, and fits if the bucket then lacks no more than Burst. In any span of length d at most Burst + d*Limit/Per permits
// pass.
//
// With Prepay a call may take more than the bucket holds, and the next call waits for that debt. This is how the RateLimiter of
// Google's Guava library counts. With Warmup the rate rises after idling, from a third of Limit to Limit, as in its
// SmoothWarmingUp.
//
// [LeakyBucket] is a TokenBucket with a burst of one: permits leave evenly spaced, one every Per/Limit. It is the leaky bucket as a
// meter. With Wait it becomes the leaky bucket as a queue, of at most Queue permits.
//
// [SlidingCounter] is a SlidingWindow that counts permits by slices of time instead of one by one. Its state is of constant size, so it
// takes any limit. It never admits more than Limit in any span of Per: a permit counts until its whole slice has left the window, which
// is up to Per/Slices too long. The estimate from two windows that others call a sliding window may admit more than the limit.
//
// Distinct counts different members instead of calls, in a SlidingWindow or Calendar: ten strangers a day, however often each calls.
//
// # Failures
//
// When the store cannot decide, a [FailurePolicy] does: refuse with a [StoreError], let pass, or count in this process alone. Decisions
// and events then have the source [SourcePolicy]. The errors of a call are [TooManyRequestsError], [NeverAdmissibleError], [KeyError],
// [StoreError] and [RuleError], or wrap the context's. Each is one line of at most a kilobyte, whatever a caller sent, and
// implements [log/slog.LogValuer] and [encoding/json.Marshaler].
package ratelimit
