// Package annotations reads the language of the //ratelimit: directives. It turns comments into values that carry their
// positions, and into diagnostics that stand at the wrong word.
//
// It knows the language alone. Whether the arguments of a rule make sense together is for ratelimit.Rule.Validate to say, what
// an expression means is for the generator to find out, and neither Go types nor stores are known here.
//
// # Directives
//
// A directive is a line comment that begins with //ratelimit: and stands in the doc comment of a type, a method or a struct
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
//	verb      = "wrap" | "rule" | "skip" | "fallback" | "bare"
//	argument  = name "=" value | flag | function    no spaces around the "="
//	value     = bare | string | raw
//	bare      = bytes without spaces; the first is no quote or =, the last no comma or semicolon, and neither
//	            of these stands before a name=
//	string    = a Go string in double quotes, with Go's escapes
//	raw       = a Go string in backquotes
//	function  = identifier | [ identifier ] "." identifier
//
// Arguments come in any order, each at most once, and no value is empty. Write a further // in front of a line to switch it
// off. A comment that looks like a directive but is none (// ratelimit:rule, //ratelimit: rule, //rateLimit:rule) is an error.
// So is a directive that no declaration carries: [Stray] finds these.
//
// # Types
//
// The kind of a type decides what is generated for it. An unexported type gets unexported names.
//
//	type Sender interface {...}   LimitedSender, which implements Sender, and NewLimitedSender(next Sender, limiter)
//	type Service struct {...}     LimitedService with the exported methods of *Service, promoted ones included, and
//	                              NewLimitedService(next *Service, limiter). The directives stand on the type or on its
//	                              methods, in any file of the package. Other types with methods are treated alike.
//	type Client struct {          LimitClient(next Client, limiter) Client returns a copy of next whose limited funcs
//	    Send func(...) error      call those of next. Other fields are copied, and nil funcs stay nil. The directives
//	}                             stand on the fields, or on the type if it has no exported methods.
//	type Handler func(...) error  LimitHandler(next Handler, limiter) Handler. The directives stand on the type.
//
// Below, whatever is said of methods holds for func fields as well. To limit a type of another package, annotate an alias of it.
//
// # Verbs
//
// The table [Verbs] lists all verbs and arguments; "ratelimit help rule" prints it for one verb, and docs/directives.md shows
// it whole. A rule on a method limits that method. A rule on a type limits all methods of the type together.
//
// skip stands on a method to which the rules of its type do not apply. Above an embedded type it says that the embedded type's
// own rules are left out on purpose, and no warning follows.
//
// fallback names the function to call instead of a refused call:
//
//	//ratelimit:fallback sendLater           a function of the package
//	//ratelimit:fallback .SendLater          another method or func of the wrapped value, past its limits
//	//ratelimit:fallback Queue.SendLater     a method of a new Queue, or of the package's variable Queue
//	//ratelimit:fallback queue.Push          a function of an imported package; the import may be named _
//
// A fallback takes the parameters of the method, and then the refusal as an error if it has one parameter more. It has the
// method's results. It is called where errors.Is(err, ratelimit.ErrTooManyRequests); other errors are returned. A method
// without an error result may have rules if it has a fallback, which is then called for every error of the limiter. If the
// fallback is a nil func, the refusal is returned; a method without an error result panics, as any call of nil does.
//
// bare stands at the end of a line of code, with a reason, where that line uses a limited type without its limits on purpose.
//
// # Names
//
// A rule without a name is called pkg.Type.Method, or pkg.Type if it stands on a type. Here pkg is the path of the package inside its
// module. In the root package of a module, pkg is the name of the package, or the last element of the module's path if the package is a
// program. Rules of one name and one window share their count. Unnamed rules of one method are told apart by their keys. So two of them
// with one key and one window need names, even if one of them is in shadow mode, or if they have different conditions.
//
// # Values
//
// A count is a decimal integer of at least 1. Underscores may separate its digits, as in Go: 1_000.
//
// An amount is a decimal integer or else an expression: limit=10, limit=0, limit="vip ? 100 : 10".
//
// A duration is a sequence of decimal numbers with units, and more than zero: 90s, 1.5h, 1d, 1w2d12h. The units are those
// of [time.ParseDuration], and d and w for 24 and 168 hours.
//
// A word consists of ASCII letters, digits, ".", "_", "-" and "/". An identifier is Go's. A text is any value. A flag stands alone, without
// "=" and a value.
//
// An expression is one of expr-lang, such as len(items) or user?.ID == 7.
//
// A template is text with expressions in braces. {{ and }} stand for braces in the text. An expression ends at the brace that
// closes it, so brackets inside it must be balanced. Strings inside it may hold anything:
//
//	sms:{phone}                      the text sms: and the value of phone
//	{{{id}}}                         the value of id in braces
//	{tenant}-{lookup["}"]}           two expressions
//	{ {"a": 1}["a"] }                an expression that begins with a map; the space keeps it from being {{
//
// Quotes inside a template are written in a raw string, key=`{m["a"]}`, or escaped, key="{m[\"a\"]}".
package annotations
