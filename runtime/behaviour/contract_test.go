package behaviour_test

import (
	"context"
	"errors"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// A contract is that of a customer.
type contract struct {
	customer string
	since    time.Time
	trial    *time.Time
}

// biller has rules whose windows begin at a time of each customer's own.
type biller interface {
	//ratelimit:rule name=month key="{c.customer}" limit=2 every=1mo tz=Europe/Berlin anchor="c.since"
	month(ctx context.Context, c *contract) error

	//ratelimit:rule name=day key="{c.customer}" limit=2 every=1d anchor="c.since"
	day(ctx context.Context, c *contract) error

	//ratelimit:rule name=trial key="{c.customer}" limit=1 every=2w anchor="c.trial"
	trial(ctx context.Context, c *contract) error

	//ratelimit:rule name=words key="{c.customer}" limit=100 every=1d anchor="c.since" cost=10 settle="words" refund=error
	write(ctx context.Context, c *contract) (words int64, err error)
}

// bills is the wrapped biller. It counts its calls.
type bills struct {
	calls int
	words int64
	err   error
}

func (b *bills) call() error {
	b.calls++
	return b.err
}

func (b *bills) month(context.Context, *contract) error { return b.call() }

func (b *bills) day(context.Context, *contract) error { return b.call() }

func (b *bills) trial(context.Context, *contract) error { return b.call() }

func (b *bills) write(context.Context, *contract) (int64, error) { return b.words, b.call() }

// monthly uses up a window of a customer, and returns when the refusal says that it ends.
func monthly(t *testing.T, limited biller, c *contract) time.Time {
	t.Helper()
	for range 2 {
		if err := limited.month(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	return refused(t, limited.month, c)
}

// refused returns when a refusal says that the window ends.
func refused(t *testing.T, call func(context.Context, *contract) error, c *contract) time.Time {
	t.Helper()
	refusal, ok := errors.AsType[*ratelimit.TooManyRequestsError](call(t.Context(), c))
	if !ok {
		t.Fatalf("the window of %s is not used up", c.customer)
	}
	return time.Now().Add(refusal.RetryAfter)
}

// The windows of a customer begin on the last day of each month, as the contract began on a 31st. If the contract moves, the open window goes
// on to its end, and the next one ends by the new contract.
func TestMonthsOfACustomer(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *subject) {
		berlin, err := time.LoadLocation("Europe/Berlin")
		if err != nil {
			t.Fatal(err)
		}
		next := &bills{}
		limited := newLimitedBiller(next, ratelimit.New(bare{s.store})) // without a beat in each second of the months
		ann := &contract{customer: "ann", since: time.Date(1969, time.July, 31, 15, 0, 0, 0, berlin)}
		for range 14 { // months, with a February and both changes of the clock
			year, month, _ := time.Now().Add(24 * time.Hour).In(berlin).Date()
			want := time.Date(year, month+1, 0, 15, 0, 0, 0, berlin)
			if end := monthly(t, limited, ann); !end.Equal(want) {
				t.Fatalf("at %v: the window ends at %v, want %v", time.Now(), end, want)
			}
			time.Sleep(time.Until(want) - time.Microsecond)
			refused(t, limited.month, ann)
			time.Sleep(time.Microsecond)
		}
		if next.calls != 28 {
			t.Errorf("%d calls went through, want 28", next.calls)
		}

		old := monthly(t, limited, ann)
		ann.since = time.Date(2100, time.May, 10, 8, 0, 0, 0, berlin) // in the future
		if end := refused(t, limited.month, ann); !end.Equal(old) {
			t.Errorf("the open window ends at %v now, and before at %v", end, old)
		}
		time.Sleep(time.Until(old))
		year, month, _ := old.In(berlin).Date()
		want := time.Date(year, month+1, 10, 8, 0, 0, 0, berlin)
		if end := monthly(t, limited, ann); !end.Equal(want) {
			t.Errorf("the next window ends at %v, want %v", end, want)
		}
		bob := &contract{customer: "bob", since: time.Date(2024, time.May, 20, 8, 0, 0, 0, berlin)}
		if end := monthly(t, limited, bob); end.Equal(want) {
			t.Errorf("the windows of ann and bob end at the same time, %v", end)
		}
	})
}

// On each store, a window ends at the time of day of the anchor, by the clock of the store. It is the same if the contract moves meanwhile.
func TestDaysOfACustomer(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		limited := newLimitedBiller(&bills{}, s.limiter)
		rule := billerRules()[1]
		end := s.peek(t, ratelimit.Request{Rule: rule, Key: "ann"}).At.Add(12 * time.Hour).Truncate(time.Millisecond)
		for name, days := range map[string]int{"ann": 0, "bob": -20_000, "cid": 20_000} {
			c := &contract{customer: name, since: end.AddDate(0, 0, days)}
			for range rule.Limit {
				if err := limited.day(t.Context(), c); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				d := s.refuse(t, ratelimit.Request{Rule: rule, Key: name, Anchor: c.since})
				if got := d.At.Add(d.RetryAfter); !got.Equal(end) {
					t.Errorf("%s: the window ends at %v, want %v", name, got, end)
				}
				c.since = c.since.Add(time.Hour)
			}
		}
	})
}

// A call without a contract is not made, and takes nothing. A zero anchor is the program's mistake, and a nil one the caller's.
func TestCallsWithoutAnAnchor(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		next := &bills{}
		limited := newLimitedBiller(next, s.limiter)
		for name, test := range map[string]struct {
			call     func(context.Context, *contract) error
			internal bool
		}{"month": {limited.month, true}, "trial": {limited.trial, false}} {
			err := test.call(t.Context(), &contract{customer: "ann"})
			if e, ok := errors.AsType[*ratelimit.KeyError](err); !ok || e.Internal != test.internal || e.Rule != name || e.Expr == "" {
				t.Errorf("%s: got %#v, want a KeyError with an expression that is internal: %t", name, err, test.internal)
			}
		}
		for year, want := range map[int]string{1: "found the zero time", 0: "found a time in the year 0; expected 1 to 9999", 10000: "found a time in the year 10000; expected 1 to 9999"} {
			err := limited.month(t.Context(), &contract{customer: "ann", since: time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)})
			if want = "runtime/behaviour_test.biller.month: month: anchor: " + want; err == nil || err.Error() != want {
				t.Errorf("the year %d: got %v, want %s", year, err, want)
			}
		}
		zero := time.Time{}
		if _, ok := errors.AsType[*ratelimit.KeyError](limited.trial(t.Context(), &contract{customer: "ann", trial: &zero})); !ok || next.calls > 0 {
			t.Errorf("a pointer to the zero time is an anchor; %d calls were made", next.calls)
		}
		for _, rule := range billerRules() {
			if left := s.left(t, ratelimit.Request{Rule: rule, Key: "ann"}); left != rule.Limit {
				t.Errorf("%d permits of %s are left", left, rule.Name)
			}
		}
	})
}

// What a call cost is settled in its window, and a failed call costs nothing, although the contract moves meanwhile.
func TestSettlementOfACustomer(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		next := &bills{words: 30}
		limited := newLimitedBiller(next, s.limiter)
		rule := billerRules()[3]
		ann := &contract{customer: "ann", since: s.peek(t, ratelimit.Request{Rule: rule, Key: "ann"}).At.Add(-12 * time.Hour)}
		for _, want := range []int64{70, 70, 40} {
			next.err = nil
			if want == 70 && next.calls == 1 {
				next.err = errors.New("failed")
			}
			if _, err := limited.write(t.Context(), ann); err != next.err {
				t.Fatal(err)
			}
			if left := s.left(t, ratelimit.Request{Rule: rule, Key: "ann"}); left != want {
				t.Errorf("%d words are left, want %d", left, want)
			}
			ann.since = ann.since.Add(time.Hour)
		}
	})
}
