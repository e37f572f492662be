// Package limittest helps to test programs that limit calls. It has a limiter on a clock that the test moves, so that no test really sleeps, a
// store that fails on demand, and assertions on the errors of limited calls. [IsLimited] tests the wiring of a program.
//
//	func TestCodes(t *testing.T) {
//		limiter, clock := limittest.New(t)
//		sender := NewLimitedSender(fake, limiter)
//		send := func() error { return sender.SendCode(t.Context(), "13800000000") }
//
//		limittest.Exhaust(t, send)
//		limittest.RequireRefused(t, send(), "codes-minute")
//		clock.Advance(time.Minute)
//		limittest.RequireAllowed(t, send())
//	}
//
// # Calls that wait
//
// A call that waits for its permits sleeps on the clock. Start it in a goroutine, wait until it sleeps, and advance the clock:
//
//	done := make(chan error)
//	go func() { done <- send() }()
//	clock.AwaitSleepers(1)
//	clock.Advance(time.Minute)
//	limittest.RequireAllowed(t, <-done)
//
// The deadline of a context follows the system's clock. A call is refused if it would have to sleep past the deadline: for example, if it
// would sleep a minute on the test's clock, and the deadline is 30 seconds away.
//
// [ratelimit.Limiter.Reserve] does not sleep. To reach its place, advance the clock by the Delay of the Decision.
//
// # With testing/synctest
//
// In a bubble of testing/synctest everything uses the bubble's clock, even a store in memory that is made there. Contexts with deadlines,
// tickers and limits share that clock, so the test needs neither a Clock nor another goroutine:
//
//	synctest.Test(t, func(t *testing.T) {
//		limiter := ratelimit.New(memstore.New())
//		sender := NewLimitedSender(fake, limiter)
//		limittest.Exhaust(t, func() error { return sender.SendCode(t.Context(), "13800000000") })
//		time.Sleep(time.Minute) // returns at once, because nothing else runs
//		limittest.RequireAllowed(t, sender.SendCode(t.Context(), "13800000000"))
//	})
//
// Package limittest is not for testing that limits are exact: the tests of this module do that.
package limittest
