// Package annotations parses //ratelimit: directives. It turns comments into values with source positions, and reports each
// mistake at the position of the wrong word.
//
// It knows the syntax only. ratelimit.Rule.Validate checks whether the arguments of a rule fit together, and the generator
// checks the expressions. The package knows nothing of Go types or stores.
//
// # Directives
//
// A directive is a line comment that begins with //ratelimit: and is part of the doc comment of a type, a method or a struct
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
// This is the grammar. Spaces are those of [unicode.IsSpace].
//
//	directive = "//ratelimit:" verb { spaces argument } [ spaces ]
//	verb      = "wrap" | "guard" | "rule" | "skip" | "fallback" | "plain" | "bare"
//	argument  = name "=" value | flag | function    no spaces around the "="
//	value     = bare | string | raw
//	bare      = bytes without spaces. The first is not a quote or =. The last is not a comma or semicolon, and
//	            no comma or semicolon stands before name=
//	string    = a Go string in double quotes, with Go's escapes
//	raw       = a Go string in backquotes
//	function  = identifier | [ identifier ] "." identifier
//
// Arguments may be in any order, each at most once. No value may be empty. Another // in front of a directive switches it off.
// A line of a comment is suspect if its first word is the tool's name, or nearly so, and stands next to a colon of any kind: // ratelimit:rule,
// //ratelimiter:rule, //ratelimit：rule, //rate:limit rule, //go:ratelimit:rule. This is an error, or a warning if no verb follows, as in
// "// ratelimit: see below". Every other line is prose, and so is the code in a block comment, which is indented.
//
// It is also an error if a directive stands where it has no effect. [Stray] finds that.
//
// # Types
//
// The generated code depends on the kind of the type. For an unexported type the generated names are unexported too.
//
//	type Sender interface {...}   LimitedSender, which implements Sender, and NewLimitedSender(next Sender, limiter)
//	type Service struct {...}     LimitedService with the exported methods of *Service, promoted ones included, and
//	                              NewLimitedService(next *Service, limiter). The directives stand on the type or on its
//	                              methods, in any file of the package. Other types with methods get the same.
//	type Client struct {          LimitClient(next Client, limiter) Client returns a copy of next whose limited funcs
//	    Send func(...) error      call those of next. Other fields are copied, and nil funcs stay nil. The directives
//	}                             stand on the fields, or on the type if it has no exported methods.
//	                              With //ratelimit:guard on the type: ServiceGuard, with a method for each method of
//	                              Service that has rules, and NewServiceGuard(limiter).
//	type Handler func(...) error  LimitHandler(next Handler, limiter) Handler. The directives stand on the type.
//
// Everything below about methods is also true for func fields. To limit a type of another package, annotate an alias of it.
//
// # Verbs
//
// The table [Verbs] lists all verbs and arguments. "ratelimit help rule" prints the part of one verb, and docs/directives.md
// has the whole table. A rule on a method limits that method. A rule on a type limits all methods of the type together.
//
// skip, on a method, says that the rules of the type do not apply to it. Above an embedded type it says that the rules of the
// embedded type are left out on purpose, and silences the warning about them.
//
// fallback names the function to call when a call is refused:
//
//	//ratelimit:fallback sendLater           a function of the package
//	//ratelimit:fallback .SendLater          another method or func of the wrapped value, without its limits
//	//ratelimit:fallback Queue.SendLater     a method of a new Queue, or of the package's variable Queue
//	//ratelimit:fallback queue.Push          a function of an imported package; the import may be named _
//
// A fallback has the parameters and the results of the method. It may have one more parameter, the last, of type error: the
// refusal. It is called if errors.Is(err, ratelimit.ErrTooManyRequests); other errors are returned. A method without an error
// result may have rules if it has a fallback, which is then called for every error of the limiter. If the fallback is a nil
// func, the method returns the refusal, or panics if it has no error result.
//
// bare, at the end of a line of code, gives the reason why the line uses or declares a type without its limits.
//
// # Names
//
// A rule without a name is called pkg.Type.Method, or pkg.Type if it stands on a type. Here pkg is the path of the package
// inside its module. In the root package of a module, pkg is the name of the package, or the last element of the module's path
// if the package is a program. Rules with the same name and the same window share their count. Unnamed rules of one method
// count separately if their keys or windows differ. If two of them have the same key and the same window, they need names,
// even if one of them is in shadow mode or if their conditions differ.
//
// # Values
//
// A count is a decimal integer of at least 1. Underscores may separate its digits, as in Go: 1_000.
//
// An amount is a decimal integer or an expression: limit=10, limit=0, limit="vip ? 100 : 10".
//
// A duration is a sequence of decimal numbers with units, and more than zero: 90s, 1.5h, 1d, 1w2d12h. The units are those
// of [time.ParseDuration], and d and w for 24 and 168 hours.
//
// A period is a number of days, weeks, months or years of the calendar: 1d to 366d, 1w to 52w, 1mo to 12mo or 1y to 10y.
//
// A word consists of ASCII letters, digits, ".", "_", "-" and "/". An identifier is a Go identifier. A flag has no "=" and no
// value.
//
// An expression is one of expr-lang, such as len(items) or user?.ID == 7.
//
// A template is text with expressions in braces. {{ and }} stand for braces in the text. An expression ends at the brace that
// closes it, so brackets inside it must be balanced. Strings inside it may hold anything:
//
//	sms:{phone}                      the text sms: and the value of phone
//	{{{id}}}                         the value of id between braces
//	{tenant}-{lookup["}"]}           two expressions
//	{ {"a": 1}["a"] }                an expression that begins with a map; the space keeps it from being {{
//
// Quotes inside a template are written in a raw string, key=`{m["a"]}`, or escaped, key="{m[\"a\"]}".
package annotations
