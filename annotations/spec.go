package annotations

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ratelimit-go/ratelimit/internal/period"
)

// Verb is a word that may follow //ratelimit: and the arguments that it takes.
type Verb struct {
	Name string
	On   string // where the directive may stand, as in "at the end of a line"
	Doc  string
	Args []Argument
}

// Argument is a row of the table of arguments.
type Argument struct {
	Name  string
	Kind  Kind
	Words []Word // the values of an Enum, in the order of the documentation
	Field string // the field of ratelimit.Rule; "" if each call computes the value, and for verbs other than rule
	Doc   string // one line
}

// Word is a value of an Enum.
type Word struct {
	Text  string
	Const string // the constant of package ratelimit; "" if the field is a bool, which the second word sets
}

// Kind says how a value is written.
type Kind string

const (
	TemplateKind Kind = "template"
	AmountKind   Kind = "amount"
	ExprKind     Kind = "expression"
	DurationKind Kind = "duration"
	RangeKind    Kind = "durations"
	CountKind    Kind = "count"
	NameKind     Kind = "word"
	IdentKind    Kind = "identifier"
	CronKind     Kind = "schedule"
	PeriodKind   Kind = "period"
	ZoneKind     Kind = "time zone"
	EnumKind     Kind = "one of"
	FlagKind     Kind = "flag"
)

// Where directives may stand.
const (
	aboveType   = "above a type of the package"
	aboveStruct = "above a struct type of the package"
	aboveMethod = "above a method or a func field"
)

var failurePolicies = []Word{{"deny", "FailClosed"}, {"allow", "FailOpen"}, {"local", "FailLocal"}}

// options are the arguments of wrap and guard.
var options = []Argument{
	{Name: "name", Kind: IdentKind, Doc: "name of the generated type, or of the generated function Limit..."},
	{Name: "prefix", Kind: NameKind, Doc: "stands before the name of every rule of the type, with a dot between them"},
	{Name: "tz", Kind: ZoneKind, Doc: "time zone of rules with cron= or every= and without tz="},
	{Name: "on-error", Kind: EnumKind, Words: failurePolicies, Doc: "what to do while the store fails, for rules without on-error="},
}

// Verbs is the table of all verbs and arguments. Everything that needs them reads it: the parser and its suggestions,
// the Rule literals in generated code, ratelimit -list and ratelimit help, and the documentation. Readers get the arguments in
// this order: first what everybody uses, and last what few need.
//
// To add an argument to rule, add a row here, and its field to ratelimit.Rule if it has one: CONTRIBUTING.md lists the other places.
var Verbs = []Verb{
	{Name: "wrap", On: aboveType, Doc: "sets options of the wrapper; a type has at most one", Args: options},
	{Name: "guard", On: aboveStruct, Doc: "generates a guard instead of a wrapper, for the methods of the struct to call; takes the options of wrap",
		Args: options},
	{Name: "rule", On: aboveType + ", or above a method or a func field of it", Doc: "sets one limit; there may be several rules, one on each line", Args: []Argument{
		{Name: "name", Kind: NameKind, Field: "Name", Doc: "names the rule in errors, metrics and headers; pkg.Type.Method if absent, or pkg.Type on a type"},
		{Name: "key", Kind: TemplateKind, Field: "Key", Doc: "whom the budget belongs to; one budget for everybody if absent"},
		{Name: "algorithm", Kind: EnumKind, Field: "Algorithm", Words: []Word{
			{"sliding-window", "SlidingWindow"}, {"fixed-window", "FixedWindow"}, {"calendar", "Calendar"},
			{"sliding-counter", "SlidingCounter"}, {"token-bucket", "TokenBucket"}, {"leaky-bucket", "LeakyBucket"},
			{"concurrency", "Concurrency"},
		}, Doc: "how to count; if absent, sliding-window with per= and calendar with cron= or every="},
		{Name: "limit", Kind: AmountKind, Field: "Limit", Doc: "permits in a window, or permits that running calls may have at the same time; an expression is computed in each call"},
		{Name: "per", Kind: DurationKind, Field: "Per", Doc: "length of the window; with concurrency, how long permits outlive a process that died, 1m if absent"},
		{Name: "cron", Kind: CronKind, Field: "Cron", Doc: "windows that begin at the times of a cron expression, instead of per"},
		{Name: "tz", Kind: ZoneKind, Field: "TZ", Doc: "time zone of cron and every; if absent, that of wrap, or UTC"},
		{Name: "cost", Kind: AmountKind, Doc: "permits that a call takes; 1 if absent; a call whose expression gives 0 takes none"},
		{Name: "settle", Kind: ExprKind, Doc: "the real cost, computed from the results of the call; replaces cost, also if the call fails, unless refund=error"},
		{Name: "wait", Kind: DurationKind, Field: "Wait", Doc: "wait up to this long for permits instead of refusing at once"},
		{Name: "pause", Kind: ExprKind, Doc: "after the call, pause the key in all processes for this duration, computed from the results, as in pause=\"retryAfter(err)\""},
		{Name: "mode", Kind: EnumKind, Field: "Mode", Words: []Word{
			{"enforce", "ModeEnforce"}, {"shadow", "ModeShadow"}, {"trigger", "ModeTrigger"},
		}, Doc: "refuse calls, only report them, or call the limiter's trigger function; enforce if absent"},
		{Name: "on-error", Kind: EnumKind, Field: "OnError", Words: failurePolicies,
			Doc: "what to do while the store fails; if absent, as wrap says, or else the limiter"},
		{Name: "message", Kind: TemplateKind, Field: "Message", Doc: "what a refused caller is told: the Message of the error"},
		{Name: "when", Kind: ExprKind, Doc: "the rule applies only if this is true"},
		{Name: "every", Kind: PeriodKind, Field: "Every", Doc: "windows that begin at a time of the key's own, instead of per: " + period.WantEvery},
		{Name: "anchor", Kind: ExprKind, Doc: "with every: that time, such as the start of a contract, as a time.Time; windows count from it in both directions, in the time zone tz"},
		{Name: "burst", Kind: CountKind, Field: "Burst", Doc: "capacity of a token bucket; limit if absent"},
		{Name: "queue", Kind: CountKind, Field: "Queue", Doc: "with token-bucket and leaky-bucket: how many calls of cost 1 may wait at a time"},
		{Name: "hold", Kind: IdentKind, Doc: "with concurrency: the result that keeps the permit until it is closed, has ended, or returns an error; if absent, the permit comes back when the method returns"},
		{Name: "refund", Kind: EnumKind, Field: "Refund", Words: []Word{{"never", "RefundNever"}, {"error", "RefundError"}},
			Doc: "give the permits back when the call returns an error; never if absent"},
		{Name: "block", Kind: RangeKind, Field: "Block", Doc: "after a refusal, refuse the key for this long; with 10m..24h, each block within a day of the last one's end is twice as long, up to the second duration"},
		{Name: "scope", Kind: EnumKind, Field: "Scope", Words: []Word{{"fleet", "ScopeFleet"}, {"instance", "ScopeInstance"}},
			Doc: "share the count with all users of the store, or count in this limiter alone; fleet if absent"},
		{Name: "hash", Kind: EnumKind, Field: "Hash", Words: []Word{{"true", "HashSubject"}, {"false", "HashNever"}},
			Doc: "hash keys if the limiter has WithSubjectHash; true if absent"},
		{Name: "report", Kind: EnumKind, Field: "Unreported", Words: []Word{{Text: "true"}, {Text: "false"}},
			Doc: "tell clients about the rule; with false, its name, limit and message stand in no answer, only its delay; true if absent"},
		{Name: "distinct", Kind: TemplateKind, Field: "Distinct", Doc: "count the different values of this template instead of calls; not together with cost"},
		{Name: "warmup", Kind: DurationKind, Field: "Warmup", Doc: "the rate of a token bucket rises over this time"},
		{Name: "prepay", Kind: FlagKind, Field: "Prepay", Doc: "a call may go into debt; a leaky bucket needs this for costs above 1"},
		{Name: "slices", Kind: CountKind, Field: "Slices", Doc: "slices of a sliding counter; 60 if absent"},
		{Name: "lease", Kind: DurationKind, Field: "Lease", Doc: "take permits from the store in advance, for up to this long, and hand them out in the process: fewer round trips, at a price that performance.md explains; all rules of a method need the same lease"},
	}},
	{Name: "skip", On: aboveMethod + ", or above an embedded type whose rules or funcs the wrapper leaves out",
		Doc: "says that the rules of the type do not apply here; takes no arguments"},
	{Name: "fallback", On: aboveMethod + ", or above a func type",
		Doc: "names the function or method to call when a call is refused, as in fallback sendLater, or fallback .SendLater for a method of the same type"},
	{Name: "plain", On: aboveMethod + ", or above a func type",
		Doc: "says that results, and arguments of functions that are passed, stay without limits; takes no arguments"},
	{Name: "bare", On: "at the end of a line of code", Doc: "gives the reason why this line uses or declares a type without its limits"},
}

// LookUp returns the verb of that name, or nil.
func LookUp(verb string) *Verb {
	i := slices.IndexFunc(Verbs, func(v Verb) bool { return v.Name == verb })
	if i < 0 {
		return nil
	}
	return &Verbs[i]
}

// Argument returns the row of that name, or nil.
func (v *Verb) Argument(name string) *Argument {
	i := slices.IndexFunc(v.Args, func(a Argument) bool { return a.Name == name })
	if i < 0 {
		return nil
	}
	return &v.Args[i]
}

// names returns the arguments of a verb.
func (v *Verb) names() []string { return each(v.Args, func(a Argument) string { return a.Name }) }

// isFlag reports whether name is an argument that takes no value.
func (v *Verb) isFlag(name string) bool {
	a := v.Argument(name)
	return a != nil && a.Kind == FlagKind
}

// takenBy returns the name of the argument that takes word as a value, or "".
func (v *Verb) takenBy(word string) string {
	for _, a := range v.Args {
		if slices.Contains(a.words(), word) {
			return a.Name
		}
	}
	return ""
}

// words returns the values that an Enum takes.
func (a *Argument) words() []string { return each(a.Words, func(w Word) string { return w.Text }) }

// each returns f(t) for each element t.
func each[T, R any](of []T, f func(T) R) (results []R) {
	for _, t := range of {
		results = append(results, f(t))
	}
	return results
}

// Grammar describes a verb and its arguments as plain text, a line each.
func Grammar(v *Verb) string {
	var b strings.Builder
	fmt.Fprintf(&b, "//ratelimit:%s stands %s.\nIt %s.\n", v.Name, v.On, v.Doc)
	if len(v.Args) > 0 {
		b.WriteString("\n")
	}
	for _, a := range v.Args {
		line := fmt.Sprintf("%-10s %-10s %s", a.Name, a.Kind, a.Doc)
		if a.Kind == EnumKind {
			line = fmt.Sprintf("%-10s %s: %s", a.Name, strings.Join(a.words(), ", "), a.Doc)
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// isSpaced reports whether a value of this kind often has spaces in it.
func (k Kind) isSpaced() bool {
	return k == TemplateKind || k == AmountKind || k == ExprKind || k == CronKind
}

// wants describes the values of each kind but EnumKind, for error messages.
var wants = map[Kind]string{
	TemplateKind: "text with {expressions}",
	AmountKind:   "an integer or an expression",
	ExprKind:     "an expression",
	DurationKind: period.Want,
	RangeKind:    period.Want + ", or two, such as 10m..24h",
	CountKind:    "an integer of at least 1",
	NameKind:     "letters, digits and " + strings.Join(strings.Split(punctuation, ""), " "),
	IdentKind:    "an identifier",
	CronKind:     "a cron expression",
	PeriodKind:   period.WantEvery,
	ZoneKind:     "a time zone",
}

// want describes the values of an argument, for error messages.
func (a *Argument) want() string {
	if a.Kind == EnumKind {
		return list(a.words(), "or")
	}
	return wants[a.Kind]
}

// punctuation lists the characters that a word may have besides letters and digits. Words become part of keys, headers and
// metrics.
const punctuation = "._-/"

// VerbNames are the names of all verbs.
var VerbNames = each(Verbs, func(v Verb) string { return v.Name })

// argumentNames are the names of the arguments of all verbs.
var argumentNames = slices.Concat(each(Verbs, func(v Verb) []string { return v.names() })...)

// otherNames maps the words that other systems use to the arguments of rule.
var otherNames = map[string]string{
	"window": "per", "interval": "per", "duration": "per", "time": "per", "within": "per",
	"rate": "limit", "max": "limit", "count": "limit", "frequency": "limit", "permits": "limit", "requests": "limit", "calls": "limit",
	"by": "key", "subject": "key", "if": "when", "condition": "when", "timezone": "tz", "zone": "tz",
	"schedule": "cron", "since": "anchor", "start": "anchor", "strategy": "algorithm", "weight": "cost", "timeout": "wait", "capacity": "burst", "error": "message",
}

// otherWords maps the words that other systems use to those of algorithm and mode.
var otherWords = map[string]string{
	"gcra": "token-bucket", "dry-run": "shadow", "dryrun": "shadow", "dry_run": "shadow", "log-only": "shadow", "report": "shadow", "observe": "shadow",
}
