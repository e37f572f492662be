package x

import (
	"context"
	str "strings"
)

type X interface {
	//ratelimit:rule limit=1 per=1m
	//ratelimit:fallback sendLatr
	//                   ^ unknown function sendLatr; did you mean sendLater?
	Unknown(ctx context.Context, a string) error
	//ratelimit:rule limit=1 per=1m
	//ratelimit:fallback Unknown
	//                   ^ unknown function Unknown; did you mean .Unknown?
	Undotted(ctx context.Context, a string) error
	//ratelimit:rule limit=1 per=1m
	//ratelimit:fallback sendLater
	//                   ^ sendLater is a func(ctx context.Context, a string) error; expected a func(ctx context.Context, a int) error, with or without a last parameter of type error
	Param(ctx context.Context, a int) error
	//ratelimit:rule limit=1 per=1m
	//ratelimit:fallback sendLater
	//                   ^ sendLater is a func(ctx context.Context, a string) error; expected a func(ctx context.Context, a string) (int, error), with or without a last parameter of type error
	Result(ctx context.Context, a string) (int, error)
	//ratelimit:rule limit=1 per=1m
	//ratelimit:fallback .Reslt
	//                    ^ X has no method Reslt; did you mean Result?
	Method() error
	//ratelimit:rule limit=1 per=1m
	//ratelimit:fallback str.Joi
	//                       ^ package strings has no function Joi; did you mean Join?
	Import() error
	//ratelimit:rule limit=1 per=1m
	//ratelimit:fallback X2.M
	//                   ^ X2 is an interface, so there is no new value to call; expected a concrete type
	Interface() error
	//ratelimit:rule limit=1 per=1m
	//ratelimit:fallback Y.M
	//                     ^ Y has no method M
	Type() error
	//ratelimit:rule limit=1 per=1m
	//ratelimit:fallback nowhere.M
	//                   ^ unknown type, variable or package nowhere; if it is a package, import it as _
	Nowhere() error
	//ratelimit:rule limit=1 per=1m
	//ratelimit:fallback httplimit.Answer
	//                   ^ unknown type, variable or package httplimit; import "github.com/ratelimit-go/ratelimit/runtime/httplimit", as _ if only directives use it
	NotImported() error
	//ratelimit:rule limit=1 per=1m
	//ratelimit:fallback sendLater.M
	//                   ^ unknown type, variable or package sendLater; if it is a package, import it as _
	OfFunction() error
	//ratelimit:rule limit=1 per=1m
	//ratelimit:fallback Y
	//                   ^ Y is not a function
	NoFunction() error
	//ratelimit:rule limit=1 per=1m
	//ratelimit:fallback Queue.Push
	//                   ^ Queue.Push is a field, which is nil in a new value; expected a method
	Field() error
	//ratelimit:rule limit=1 per=1m
	//ratelimit:fallback generic
	//                   ^ generic is generic; expected the type parameters of X, or none
	Generic(a string) error
	//ratelimit:fallback noError
	//          ^ no rule refuses calls of NoRule, so its fallback is never called
	NoRule()
}

func sendLater(ctx context.Context, a string) error { return nil }

type Several[T any] interface {
	//ratelimit:rule limit=1 per=1m
	//ratelimit:fallback comparing
	//                   ^ comparing is generic; expected the type parameters of Several, or none
	Constrained(a T) error
	//ratelimit:rule limit=1 per=1m
	//ratelimit:fallback Box.Put
	//                   ^ Box is generic; its methods cannot be a fallback
	Boxed(a T) error
}

func comparing[T comparable](a T) error { return nil }

type Box[T any] struct{}

func (Box[T]) Put(a T) error { return nil }

type Queue struct{ Push func() error }

func generic[T any](a T) error { return nil }

func noError() {}

type X2 interface{ M() error }

type Y struct{}

//ratelimit:fallback noError
//          ^ fallback belongs above a method; it names the function to call instead of the method
//ratelimit:rule limit=1 per=1m
type Z interface{ M() error }
