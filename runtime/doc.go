// Package ratelimit decides whether a call may happen now. Wrappers that the ratelimit command generates call it, and a
// program may call it without any annotation:
//
//	limiter := ratelimit.New(memstore.New())
//	rule := ratelimit.Rule{Name: "login", Limit: 5, Per: time.Minute}
//	decision, err := limiter.Allow(ctx, ratelimit.Request{Rule: rule, Key: userID})
//
// A [Rule] says how many permits a subject has in a window of time; a [Limiter] decides calls, each under any number of
// rules, all or none; a [Store] keeps the counts: package memstore in this process, package redisstore on Redis, shared by
// a fleet. The clock is the store's.
//
// It is not for limiting how many calls
// run at one time: that is a semaphore's work.
package ratelimit
