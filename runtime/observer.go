package ratelimit

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/decide"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/printable"
)

// EventKind is what happened.
type EventKind uint8

const (
	EventAdmitted  EventKind = iota // the call was admitted, perhaps after a wait, or it reserved a place
	EventRefused                    // rules refused the call
	EventFailed                     // the call was not decided: see Err
	EventAbandoned                  // the context ended while the call waited; it costs nothing, and had no EventAdmitted
	EventRefunded                   // a charge was given back, or could not be: see Err
	EventSettled                    // a charge was changed to what the call cost, or could not be: see Err
	EventStoreLost                  // the store began to fail; Err says why
	EventStoreBack                  // the store decides again, and has not failed for five seconds
	EventChanged                    // this program changed settings: see Change and Settings
	EventReleased                   // a call is over, and gave the permits of rules with Concurrency back, or could not: see Err
	EventGiven                      // [Limiter.Give] gave CostBefore permits back, or all that were taken if these are fewer; or it took Cost; or it failed with Err
	EventAdded                      // [Charge.Add] took more permits for a call that runs, or could not: see Err
)

// String returns "admitted", "refused", "failed", "abandoned", "refunded", "settled", "store_lost", "store_back", "changed", "released",
// "given" or "added".
func (k EventKind) String() string {
	return word("EventKind", uint8(k), "admitted", "refused", "failed", "abandoned", "refunded", "settled", "store_lost", "store_back", "changed", "released",
		"given", "added")
}

// Event tells an observer about one decision, about the refund, settlement or growth of a charge, about the store, or about settings that this
// program changed. It is valid only while the observer runs. An observer that keeps an event must copy it and its Rules.
//
// If a call was not decided, Rules has the rule that Err is about, or else all rules that apply. They charge nothing.
//
// To bill by rule and key, add Cost - CostBefore of the Rules of EventAdmitted, EventAdded, EventRefunded and EventSettled that are not Refused. The
// sum is what the rule has charged for calls. With EventReleased, the sum for a rule with Concurrency is what runs now. For example, a call
// under a limit of tokens is admitted with Cost 10. Its settlement has CostBefore 10 and Cost 25. So 25 tokens are to be paid.
//
// Another example: a call sleeps for 2 seconds until it is admitted, and the store takes a millisecond to say so. Then Kind is EventAdmitted,
// Waited 2 seconds, and Took a millisecond.
type Event struct {
	Kind       EventKind     // what happened
	Method     string        // pkg.Type.Method; "" for requests
	Rules      []Outcome     // of a decision, the rules that applied; of a refund, a settlement, [Charge.Add] or [Limiter.Give], those whose charges it is about; in their order
	RetryAfter time.Duration // of a refusal: until all rules would admit the call; 0 if Never
	Never      bool          // of a refusal: a rule of limit 0 refused
	Took       time.Duration // how long the decision took, without Waited; for most decisions in this process, whole microseconds
	Waited     time.Duration // how long the call waited for its permits; after Limiter.Reserve, how long it is until they are due
	Source     Source        // what decided
	Err        error         // the error, or nil; if a FailurePolicy decided the call, the error of the store; of EventAdded, what Add returned
	Change     string        // of EventChanged: "set", "clear", "block", "unblock", "pause" or "resume"; or "undo", by the console
	Settings   []Setting     // of EventChanged: what holds now, by whom, and why; of "clear", "unblock" and "resume" without values
}

// Outcome is the answer of one rule. For example, a rule of ten permits a minute has 2 left, and a call asks for 3. If the next permit comes
// back in 5 seconds, it is Refused, with Limit 10, Cost 3, Remaining 2, and RetryAfter 5 seconds.
type Outcome struct {
	Rule       string        // its name
	Window     string        // see [Rule.Window]
	Key        string        // as in Violation
	Mode       Mode          // ModeShadow and ModeTrigger refuse nothing
	Limit      int64         // permits per window
	CostBefore int64         // permits that the rule was charged before; of an abandoned call, permits that it asked for; else 0
	Cost       int64         // permits that the rule has charged for the call; of a refused call, permits that it asked for; of an EventAdded that took none, CostBefore
	Remaining  int64         // of a refusal: permits that the rule would admit now; unless Never, at most one less than the call costs
	RetryAfter time.Duration // of a refusal: until this rule would admit the call; 0 if Never
	Refused    bool          // the rule refused; in ModeShadow it would have
	Never      bool          // the rule refuses every such call
	Running    int64         // of a refusal under Concurrency: permits of calls that run
	Waits      bool          // the call may wait for permits of the rule, as under wait=, in Limiter.Wait and in Limiter.Reserve
	Releases   bool          // a call releases the permits when it ends, as under Concurrency
}

// Result is what one rule did to a call that was decided. Metrics call it the outcome.
type Result uint8

const (
	ResultAdmitted      Result = iota // the call was admitted, and the rule alone would have admitted it
	ResultRefused                     // the rule refused the call
	ResultShadowRefused               // the rule would have refused the call, were it not in shadow mode
	ResultOtherRefused                // the rule would have admitted the call; another one refused it
)

// String returns "admitted", "refused", "shadow_refused" or "other_refused".
func (r Result) String() string {
	return word("Result", uint8(r), "admitted", "refused", "shadow_refused", "other_refused")
}

// Result returns what the rule with the outcome o did to the call, or to a [Charge.Add]. It is meaningful only for EventAdmitted, EventRefused and an
// EventAdded that was decided: one whose Err is nil or a *TooManyRequestsError.
func (e *Event) Result(o *Outcome) Result {
	switch {
	case o.Refused && o.Mode == ModeShadow:
		return ResultShadowRefused
	case o.Refused && o.Mode == ModeEnforce:
		return ResultRefused
	case e.Kind == EventRefused, e.Kind == EventAdded && isRefusal(e.Err):
		return ResultOtherRefused
	default:
		return ResultAdmitted
	}
}

func isRefusal(err error) bool {
	_, ok := err.(*TooManyRequestsError)
	return ok
}

// WithObserver adds a function that is called once for every decision, refund and settlement, and for every [Charge.Add]. That includes calls that
// fail, calls that a [FailurePolicy] decides, and calls whose key cannot be computed. [Limiter.Peek] is no decision. The function is also called when
// the store is lost, when it is back, and when this limiter has changed settings in the store. The option may be given more than once. Many
// goroutines may call the function at the same time, and each decision waits until it returns. WithObserver panics if the function is nil.
func WithObserver(observe func(ctx context.Context, e *Event)) Option {
	if observe == nil {
		panic("ratelimit.WithObserver: the function is nil")
	}
	return func(o *options) { o.observers, o.Public.Observe = append(o.observers, observe), o.observeCall }
}

func (o *options) observe(ctx context.Context, e *Event) {
	for _, observe := range o.observers {
		observe(ctx, e)
	}
}

// kinds are the events of package decide.
var kinds = [...]EventKind{
	decide.Refunded: EventRefunded, decide.Settled: EventSettled, decide.Released: EventReleased, decide.Given: EventGiven,
	decide.StoreLost: EventStoreLost, decide.StoreBack: EventStoreBack,
}

// tell calls the observers with an event that is no decision.
func (o *options) tell(ctx context.Context, kind decide.EventKind, method string, err error, changed []decide.Changed) {
	e := &Event{Kind: kinds[kind], Method: method, Err: err}
	for _, c := range changed {
		outcome := unanswered(c.Rule, c.Subject, c.Limit)
		outcome.CostBefore, outcome.Cost = c.Before, c.After
		e.Rules = append(e.Rules, outcome)
	}
	o.observe(ctx, e)
}

// tellChange calls the observers with settings that this program changed.
func (o *options) tellChange(ctx context.Context, what string, settings []*fleet.Setting) {
	o.observe(ctx, &Event{Kind: EventChanged, Change: what, Settings: settingsOf(settings)})
}

// events are used again, so that a decision that is observed allocates nothing.
var events = sync.Pool{New: func() any { return new(Event) }}

// observeCall tells the observers of a decision. took is how long it took, with the wait.
func (o *options) observeCall(ctx context.Context, c *decide.Call, took time.Duration) {
	e := events.Get().(*Event)
	defer events.Put(e)
	v := c.Verdict()
	*e = Event{
		Rules: e.Rules[:0], Kind: EventRefused, Method: c.Method(), Source: Source(v.Source), Err: cmp.Or(c.Err(), c.Failure()),
		Waited: c.Waited(), Took: took,
	}
	if !c.Reserves { // otherwise the wait is still to come
		e.Took -= e.Waited
	}
	switch {
	case c.Grows:
		e.Kind, e.Never, e.Err = EventAdded, c.IsNever(), c.Err()
		if e.Err == nil && !v.Admitted {
			e.Err = refusalOf(c)
		}
	case c.IsAbandoned():
		e.Kind, e.Waited, e.Took = EventAbandoned, took, 0
	case c.Err() != nil:
		e.Kind = EventFailed
	case v.Admitted:
		e.Kind = EventAdmitted
	default:
		e.Never = c.IsNever()
	}
	if rule := ruleIn(c.Err()); rule != "" {
		e.Rules = append(e.Rules, Outcome{Rule: rule})
	} else {
		asked := c.InOrder()
		for i := range asked {
			e.add(c, &asked[i])
		}
	}
	o.observe(ctx, e)
}

// add adds the outcome of one rule to a decision.
func (e *Event) add(c *decide.Call, a *decide.Asked) {
	if c.Err() != nil && e.Kind != EventAbandoned {
		o := unanswered(a.Rule, a.Claim.Subject, a.Limit)
		if o.Cost = a.Cost; c.Grows { // nothing was added
			o.CostBefore, o.Cost = a.Before, a.Before
		}
		e.Rules = append(e.Rules, o)
		return
	}
	o := outcomeOf(c, a)
	switch {
	case e.Kind == EventAbandoned:
		o = unanswered(a.Rule, a.Claim.Subject, o.Limit)
		o.CostBefore, o.Waits = a.Cost, a.Waits()
	case e.Kind == EventAdded:
		o.CostBefore, o.Cost = a.Before, a.Before+a.Claim.Charged
	case e.Kind == EventAdmitted && !o.Refused:
		o.Cost = a.Claim.Charged
	}
	if o.Mode == ModeEnforce && o.Refused && !c.IsNever() {
		e.RetryAfter = max(e.RetryAfter, o.RetryAfter)
	}
	e.Rules = append(e.Rules, o)
}

// ruleIn returns the name of the rule that an error is about, or "". A caller may have made it up.
func ruleIn(err error) (name string) {
	switch e := err.(type) {
	case *KeyError:
		name = e.Rule
	case *RuleError:
		name = e.Rule
	case *NeverAdmissibleError:
		name = e.Rule
	}
	return printable.Text(name, maxName)
}

// defaultLines is the largest number of lines that an observer logs in a second.
const defaultLines = 10

// slogger is the state of a SlogObserver.
type slogger struct {
	logger    *slog.Logger
	level     slog.Level
	plain     bool  // keys are shown as they are
	perSecond int64 // lines a second

	mu     sync.Mutex
	second int64 // the second in which lines are counted
	lines  int64
	left   int64 // events that were left out since the last line
}

// SlogOption changes what [SlogObserver] logs.
type SlogOption func(*slogger)

// WithPlainKeys logs keys as they are. Without this option a log shows a hash of each key and each Match, under a secret of the process, and no
// cause of a [KeyError], which may name a key. A reader can then tell the lines of different keys apart, but learns no phone number.
func WithPlainKeys() SlogOption { return func(s *slogger) { s.plain = true } }

// WithLinesPerSecond sets the largest number of lines in a second, instead of 10. If events were left out, the next line says how many:
// after 25 refusals in a second, 10 lines are logged, and the first line of the next second has left_out=15. An n below 1 means 1.
func WithLinesPerSecond(n int) SlogOption {
	return func(s *slogger) { s.perSecond = int64(max(1, n)) }
}

// SlogObserver returns an observer for [WithObserver] that logs refusals and failures. A refusal is logged with the delay and the rules
// that refused, in the fields rule, rule2 and so on. Failures are calls that were not decided, gave up waiting, or were decided by a
// [FailurePolicy], and refunds and settlements that failed. Those have their rules in the same fields, with cost and cost_before. So has a
// [Charge.Add] that was refused or failed. A change of settings is logged with the first of them, and their number. Admitted calls are not
// logged. SlogObserver panics if logger is nil.
func SlogObserver(logger *slog.Logger, level slog.Level, options ...SlogOption) func(context.Context, *Event) {
	if logger == nil {
		panic("ratelimit.SlogObserver: the logger is nil")
	}
	s := &slogger{logger: logger, level: level, perSecond: defaultLines}
	for _, option := range options {
		option(s)
	}
	return s.observe
}

func (s *slogger) observe(ctx context.Context, e *Event) {
	if e.Kind != EventRefused && e.Kind != EventChanged && e.Err == nil || !s.logger.Enabled(ctx, s.level) {
		return
	}
	left, ok := s.mayLog(time.Now().Unix())
	if !ok {
		return
	}
	fields := append(s.fields(e), nonEmpty(slog.Int64("left_out", left))...)
	s.logger.LogAttrs(ctx, s.level, "rate limit "+e.Kind.String(), fields...)
}

// mayLog reports whether another line may be logged in this second, and how many events were left out since the last line.
func (s *slogger) mayLog(second int64) (left int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.second != second {
		s.second, s.lines = second, 0
	}
	if s.lines >= s.perSecond {
		s.left++
		return 0, false
	}
	s.lines++
	left, s.left = s.left, 0
	return left, true
}

// logHasher hashes keys in logs. Each process has a secret of its own.
var logHasher = sync.OnceValue(func() *decide.Hasher {
	secret := make([]byte, minSecret)
	_, _ = rand.Read(secret) // it never fails
	return decide.NewHasher(secret)
})

// shown returns the text that is logged for a key.
func (s *slogger) shown(key string) string {
	if s.plain || key == "" {
		return key
	}
	return logHasher().Hash(key)
}

func (s *slogger) fields(e *Event) []slog.Attr {
	fields := nonEmpty(slog.String("method", e.Method), slog.Duration("retry_after", e.RetryAfter), slog.Bool("never", e.Never),
		slog.Duration("waited", e.Waited), slog.String("source", e.Source.String()))
	shown := 0
	for i := range e.Rules {
		if o := &e.Rules[i]; o.Refused || o.CostBefore > 0 {
			name := "rule"
			if shown++; shown > 1 {
				name += strconv.Itoa(shown) // a reader of JSON keeps one of several fields of the same name
			}
			fields = append(fields, slog.Any(name, slog.GroupValue(o.fields(s.shown(o.Key))...)))
		}
	}
	if n := len(e.Settings); n > 0 {
		first := e.Settings[0]
		first.Key, first.Match = s.shown(first.Key), s.shown(first.Match)
		text, _ := json.Marshal(first) // its times are those of the store
		fields = append(fields, slog.String("change", e.Change), slog.Any("setting", json.RawMessage(text)), slog.Int("settings", n))
	}
	if err := e.Err; err != nil {
		if !s.plain {
			err = keyless(err)
		}
		fields = append(fields, slog.String("err", printable.Line(err.Error())))
	}
	return fields
}

func (o *Outcome) fields(key string) []slog.Attr {
	return nonEmpty(slog.String("name", o.Rule), slog.String("window", o.Window), slog.String("key", key),
		slog.String("mode", o.Mode.String()), slog.Int64("limit", o.Limit), slog.Int64("cost", o.Cost),
		slog.Duration("retry_after", o.RetryAfter), slog.Int64("cost_before", o.CostBefore))
}
