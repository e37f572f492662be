package x

import "context"

// CallersChoice has patterns and counts that a caller chooses, in every way to write that.
type CallersChoice interface {
	//ratelimit:rule limit=1 per=1m when="any(list, a matches #)"
	//                                                        ^ matches needs a constant pattern
	Element(ctx context.Context, a, b string, n int, list []string) error
	//ratelimit:rule limit=1 per=1m when="let p = b; a matches p"
	//                                                         ^ matches needs a constant pattern
	Let(ctx context.Context, a, b string, n int, list []string) error
	//ratelimit:rule limit=1 per=1m when="a matches 'x' + b"
	//                                              ^ matches needs a constant pattern
	Sum(ctx context.Context, a, b string, n int, list []string) error
	//ratelimit:rule limit=1 per=1m when="not (a matches b)"
	//                                                   ^ matches needs a constant pattern
	Negated(ctx context.Context, a, b string, n int, list []string) error
	//ratelimit:rule limit=1 per=1m when="a matches (n > 1 ? 'a' : b)"
	//                                               ^ matches needs a constant pattern
	Chosen(ctx context.Context, a, b string, n int, list []string) error
	//ratelimit:rule limit=1 per=1m key="{a | repeat(n)}"
	//                                               ^ repeat needs a constant count: a caller could make the text any length
	Piped(ctx context.Context, a, b string, n int, list []string) error
	//ratelimit:rule limit=1 per=1m key="{::repeat(a, n)}"
	//                                                ^ repeat needs a constant count: a caller could make the text any length
	OfTheLanguage(ctx context.Context, a, b string, n int, list []string) error
	//ratelimit:rule limit=1 per=1m key="{repeat(a, len(b))}"
	//                                              ^ repeat needs a constant count: a caller could make the text any length
	Length(ctx context.Context, a, b string, n int, list []string) error
	//ratelimit:rule limit=1 per=1m key="{let c = n; repeat(a, c)}"
	//                                                         ^ repeat needs a constant count: a caller could make the text any length
	LetCount(ctx context.Context, a, b string, n int, list []string) error
	//ratelimit:rule limit=1 per=1m key="{join(map(list, repeat(#, n)))}"
	//                                                             ^ repeat needs a constant count: a caller could make the text any length
	EachElement(ctx context.Context, a, b string, n int, list []string) error
}
