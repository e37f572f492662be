// Package ratelimit decides whether a call may happen now. The wrappers that the ratelimit command generates use it. A program can also use
// it directly, without annotations:
//
//	limiter := ratelimit.New(memstore.New())
//	rule := ratelimit.Rule{Name: "login", Limit: 5, Per: time.Minute}
//	decision, err := limiter.Allow(ctx, ratelimit.Request{Rule: rule, Key: userID})
//
// A [Rule] says how many permits a subject has in a window of time. The subject is the owner of the permits: a user, an address, or
// everybody. A call takes permits from each of its rules: one, or as many as its cost. A [Limiter] decides calls. A call may have several
// rules: all of them are charged, or none. A [Store] keeps the counts: package memstore in this process, package redisstore on Redis for all
// processes that share it. The store's clock is the only clock.
//
// [Limiter.Allow] refuses a call that does not fit now, [Limiter.Wait] sleeps until the call fits, [Limiter.Reserve] says when that is and keeps the
// place, and [Limiter.Peek] only looks. A charge can be given back with [Decision.Refund], or corrected with [Decision.Settle] if the cost is known
// only after the call.
//
// # The model
//
// A rule answers one question: when do this many permits fit, at the earliest, if nothing else is admitted before? A call is admitted if the
// answer is now for all its rules, or soon enough for the rules that let it wait. Otherwise the call is refused, and nothing is charged.
// RetryAfter is then the time until the latest of the answers.
//
// All times are whole microseconds, and all arithmetic is on integers. If a limit changes, permits that were used before still count. If the
// store's clock is set back, no more than the limit is admitted.
//
// # The algorithms
//
// [SlidingWindow] admits at most Limit permits in any span of Per, exactly. The literature calls it a sliding log. It stores the time
// of each permit, so its state grows with the limit: a permit takes 8 to 16 bytes in this process, and about 10 on Redis. With a Limit above
// 10,000 it stores an entry for each call instead: see Rule.Amounts. RetryAfter is the time until enough of the oldest permits have left the
// window.
//
// [FixedWindow] counts the permits of one window. The first admitted call opens the window, which lasts for Per. The state is one number,
// whatever the limit. Around the end of a window up to twice the limit may pass within a moment: Limit at the end of one window, and Limit
// at the start of the next.
//
// [Calendar] is a FixedWindow that begins and ends when a cron expression fires in a time zone: for example at midnight in Tokyo, or on the
// first of each month. A day on which clocks are put forward has 23 hours. Around the end of a window twice the limit may pass here, too. The
// syntax of the expressions is that of github.com/robfig/cron.
//
// [TokenBucket] holds up to Burst permits and gains Limit of them in each Per, evenly spread. It is the generic cell rate algorithm of
// ITU-T Recommendation I.371. Its state is one number: the time at which the bucket is full again. A call of n permits moves that time by
// n*Per/Limit. The call fits if the bucket then lacks no more than Burst permits. In any span of length d at most Burst + d*Limit/Per
// permits pass.
//
// With Prepay a call may take more than the bucket holds, and the next call waits until that debt is paid. The RateLimiter of Google's Guava
// library counts this way. With Warmup the rate of an idle bucket starts at a third of Limit and rises to Limit, as in Guava's
// SmoothWarmingUp.
//
// [LeakyBucket] is a TokenBucket with a burst of one: permits leave evenly spaced, one every Per/Limit. It is the leaky bucket as a
// meter. With Wait it becomes the leaky bucket as a queue, of at most Queue permits.
//
// [SlidingCounter] is a SlidingWindow that counts permits by slices of time instead of one by one. Its state is of constant size, so it
// takes any limit. It never admits more than Limit in any span of Per: a permit counts until its whole slice has left the window, which
// is up to Per/Slices too long. The estimate from two windows that others call a sliding window may admit more than the limit.
//
// [Concurrency] bounds the calls that run at the same time: together they hold at most Limit permits. A generated wrapper gives the
// permits back when the method returns, also after a panic. Without a wrapper, the program calls [Decision.Release]. Nobody knows when calls
// end, so a refusal has no RetryAfter, but says how many permits are held. Permits of a process that died end after Per; until then they
// count. The state is an entry for each call that runs.
//
// With Every in place of Cron, a Calendar has windows of days, weeks, months or years that begin at a time of each key's own, the Anchor of its
// calls: for example a month of a user from one bill to the next.
//
// Distinct counts different members instead of calls, in a SlidingWindow or Calendar: for example ten strangers a day, however often each of
// them calls.
//
// # Failures
//
// If the store cannot decide, a [FailurePolicy] does: it refuses the call with a [StoreError], lets it pass, or counts in this process alone.
// Decisions and events then have the source [SourcePolicy]. The errors of a call are [TooManyRequestsError], [NeverAdmissibleError],
// [KeyError], [StoreError] and [RuleError], or wrap the context's. The text of each is one line of at most a kilobyte, whatever a caller sent.
// Each implements [log/slog.LogValuer] and [encoding/json.Marshaler].
package ratelimit
