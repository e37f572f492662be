// Package annotations reads the language of the //ratelimit: directives: it turns a comment group into values, each with
// the position of what spells it, and into errors that stand at the word that is wrong.
//
// It knows the language alone. Whether the arguments of a rule make sense together is for runtime.Rule.Validate to say,
// what an expression means is for the generator, and neither Go types nor a store are known here.
//
// # Directives
//
// A directive is a line comment that begins with //ratelimit: and stands in the doc comment of a type, of a method or of a
// field:
//
//	// Sender delivers one-time codes.
//	//
//	//ratelimit:wrap name=LimitedSender tz=Asia/Shanghai
//	type Sender interface {
//		// SendCode sends a login code to phone.
//		//
//		//ratelimit:rule key="{phone}" limit=1  per=1m             message="One code a minute."
//		//ratelimit:rule key="{phone}" limit=10 cron="0 0 0 * * *" message="Ten codes a day; {phone} has had them."
//		//ratelimit:rule key="{clientIP(ctx)}" limit=100 per=1h
//		SendCode(ctx context.Context, phone string) error
//
//		//ratelimit:skip
//		Close() error
//	}
//
// The grammar; spaces are those of [unicode.IsSpace], and nothing else may stand on the line:
//
//	directive = "//ratelimit:" verb { spaces argument } [ spaces ]
//	verb      = "wrap" | "rule" | "skip" | "fallback"
//	argument  = name "=" value | flag | function    no spaces around the "="
//	value     = bare | string | raw
//	bare      = bytes without spaces; the first is no quote or =, the last no comma or semicolon, and neither
//	            of these stands before a name=
//	string    = a Go string in double quotes, with Go's escapes
//	raw       = a Go string in backquotes
//	function  = identifier | [ identifier ] "." identifier
//
// Arguments come in any order, each at most once, and no value is empty. A line is switched off by a further // before
// it. What merely looks like a directive (// ratelimit:rule, //ratelimit: rule, //rateLimit:rule, /* ratelimit:rule */)
// is an error rather than prose, and so is a directive that no declaration carries: [Stray] finds these.
//
// # Types
//
// What a type is decides what is generated for it. Names that are not exported give names that are not.
//
//	type Sender interface {...}   LimitedSender, which implements Sender, and NewLimitedSender(next Sender, limiter)
//	type Service struct {...}     LimitedService, which has the exported methods of *Service, promoted ones among them, and
//	                              NewLimitedService(next *Service, limiter). The directives stand on the methods' declarations,
//	                              in any file of the package, or on the type. So for other types with methods.
//	type Client struct {          LimitClient(next Client, limiter) Client, a copy of next. Its fields that are funcs pass on to
//	    Send func(...) error      those of next, as far as a rule limits them; all other fields are as they were, and nil stays
//	}                             nil. The directives stand on the fields, or on a type without exported methods.
//	type Handler func(...) error  LimitHandler(next Handler, limiter) Handler. The directives stand on the type, fallback too.
//
// Below, what is said of methods goes for fields as well. To limit a type of another package, annotate an alias of it.
//
// # Verbs
//
//	wrap      on a type; options of the wrapper, at most once
//	    name      identifier       of the wrapper's type, or of the function Limit...
//	    prefix    word             of the names of all its rules, those with a name= of their own too
//	    tz        text             zone of the rules that name none
//	    on-error  deny, allow, local, of the rules that do not say
//	rule      on a method or a type; one limit, any number of times
//	skip      on a method; the type's rules do not apply to it. On an embedded type: its own rules are left out on purpose,
//	          and no warning says so. No arguments, at most once
//	fallback  on a method; what to call instead when refused, at most once
//	    //ratelimit:fallback sendLater           a function of the package
//	    //ratelimit:fallback .SendLater          a method or a func of the wrapped value, past its limits
//	    //ratelimit:fallback Queue.SendLater     a method of a new Queue, or of a variable of the package that is called so
//	    //ratelimit:fallback queue.Push          a function of an imported package; the import may be named _
//
// A fallback takes the parameters of the method, or those and the refusal, an error, as the last. It has the method's
// results. It is called where errors.Is(err, ratelimit.ErrTooManyRequests); other errors are returned. A method without an
// error result may have rules if it has a fallback, which is then called for every error of the limiter. Where a func that
// is nil is the fallback, the refusal is returned; without an error result, that is the panic of calling nil.
//
// # Arguments of rule
//
//	key        template         whom the budget belongs to; absent: one budget for everybody
//	limit      amount           permits in a window; an expression is computed for each call
//	per        duration         the window
//	cron       text             instead of per: calendar windows between the times of a cron expression
//	tz         text             the zone of cron; that of wrap if absent, or else UTC
//	algorithm  sliding-window, fixed-window, calendar, sliding-counter, token-bucket, leaky-bucket; if absent, sliding-window
//	                            with per, and calendar with cron
//	burst      count            capacity of the bucket; limit if absent
//	cost       amount           permits that a call takes; if an expression is 0, none
//	distinct   template         count different members instead of calls; without cost
//	when       expression       the rule applies only if true
//	wait       duration         wait up to this long instead of refusing at once; calls that count members do not wait
//	message    template         of the error
//	name       word             names the rule in errors, metrics and headers; by default it is called pkg.Type.Method, where
//	                            pkg is the package's path inside its module, and for the module's root package its name, or
//	                            that of the program, the last element of the module's path
//	scope      fleet; instance counts in this limiter alone; fleet if absent
//	mode       enforce, shadow, trigger; enforce if absent
//	refund     error, never     give the permits back when the call returns an error; never if absent
//	on-error   deny, allow, local; that of wrap if absent, or else the limiter's
//	prepay     flag             a call may go into debt; a leaky-bucket, which holds 1 permit, needs it for a cost above 1
//	warmup     duration         the rate ramps up over this long
//	queue      count            how many calls of cost 1 may wait, or calls that are due as many permits
//	slices     count            of a sliding counter; 60 if absent
//	block      duration         after a refusal, refuse for so long
//
// Rules of one name and one window share their count; those of a method that have no name are told apart by their keys. Two rules of
// one method with one key and window therefore need different names, also where one is a shadow or each applies to other calls.
//
// # Values
//
// A count is a decimal integer of at least 1; underscores may separate its digits, as in Go: 1_000.
//
// An amount is a decimal integer or else an expression: limit=10, limit=0, limit="vip ? 100 : 10".
//
// A duration is a sequence of decimal numbers with units, and more than zero: 90s, 1.5h, 1d, 1w2d12h. The units are those
// of [time.ParseDuration], and d and w for 24 and 168 hours.
//
// A word consists of ASCII letters, digits, ".", "_", "-" and "/". An identifier is Go's. A text is any. A flag stands alone, without
// "=" and a value.
//
// An expression is one of expr-lang, such as len(items) or user?.ID == 7.
//
// A template is text with islands: expressions in braces. {{ and }} stand for braces in the text. An island ends at the
// brace that closes it, so brackets inside it must be balanced, and strings inside it may hold anything:
//
//	sms:{phone}                      the text sms: and the island phone
//	{{{id}}}                         the island id in braces
//	{tenant}-{lookup["}"]}           two islands
//	{ {"a": 1}["a"] }                an island that begins with a map; the space keeps it from being {{
//
// Quotes inside a template are written in a raw string, key=`{m["a"]}`, or escaped, key="{m[\"a\"]}".
package annotations
