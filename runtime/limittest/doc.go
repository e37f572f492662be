// Package limittest helps to test programs that limit calls: with a limiter on a clock that the test moves, so that nothing sleeps for
// real, with a store that fails on demand, and with assertions on the errors of limited calls.
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
// A deadline of a context is by the system's clock: a call that would have to sleep longer on the test's clock than that is refused.
//
// # With testing/synctest
//
// In a bubble of testing/synctest all time is the bubble's, also that of a store in memory that is made there. So contexts with deadlines,
// tickers and limits share one clock, and neither a Clock nor another goroutine is needed:
//
//	synctest.Test(t, func(t *testing.T) {
//		limiter := ratelimit.New(memstore.New())
//		sender := NewLimitedSender(fake, limiter)
//		limittest.Exhaust(t, func() error { return sender.SendCode(t.Context(), "13800000000") })
//		time.Sleep(time.Minute) // at once, as nothing else runs
//		limittest.RequireAllowed(t, sender.SendCode(t.Context(), "13800000000"))
//	})
//
// Package limittest is not for testing that limits are exact: this module has tests of that.
package limittest
