package x

import "context"

type User struct{ ID string }

type X interface {
	//ratelimit:rule key="{ids}" limit=1 per=1m
	//                     ^ a []string has no stable text form; write one value of it, such as ids[0]
	List(ids []string) error
	//ratelimit:rule key="{header}" limit=1 per=1m
	//                     ^ a map[string]string has no stable text form; write one value of it, such as header['name']
	Map(header map[string]string) error
	//ratelimit:rule key="{names}" limit=1 per=1m
	//                     ^ a map[int]string has no stable text form; write one value of it, such as names[0]
	Numbers(names map[int]string) error
	//ratelimit:rule key="{user}" limit=1 per=1m
	//                     ^ a *User has no stable text form; write a field of it, such as user.ID
	Struct(user *User) error
	//ratelimit:rule key="{byName['the owner']}" limit=1 per=1m
	//                     ^ a *User has no stable text form; write a field of it, such as byName['the owner'].ID
	Named(byName map[string]*User) error
	//ratelimit:rule key="{users}" limit=1 per=1m
	//                     ^ a []*User has no stable text form; write one value of it, such as users[0].ID
	Structs(users []*User) error
	//ratelimit:rule key="{calls}" limit=1 per=1m
	//                     ^ a []func() has no stable text form; write one value of it
	Funcs(calls []func()) error
	//ratelimit:rule key="{body}" limit=1 per=1m
	//                     ^ a []byte has no stable text form; write string(...) around it
	Bytes(body []byte) error
	//ratelimit:rule key="{share}" limit=1 per=1m
	//                     ^ a *float64 has no stable text form; write int(...) around it
	Float(share *float64) error
	//ratelimit:rule key="{id}" limit=1 per=1m
	//                     ^ a *int has no stable text form; ?? '' after it gives what it points to
	Int(id *int) error
	//ratelimit:rule limit=1 per=1m algorithm=gcra
	//                                        ^ unknown algorithm "gcra"; did you mean token-bucket?
	Algorithm() error
	//ratelimit:rule limit=1 per=1m mode=dry-run
	//                                   ^ unknown mode "dry-run"; did you mean shadow?
	Mode() error
	//ratelimit:rule limit=1 per=1m dry-run
	//                              ^ unexpected "dry-run"; write mode=shadow
	Flag() error
	//ratelimit:rule limit=1 per=1m dryrun=true
	//                              ^ unexpected "dryrun"; write mode=shadow
	Value() error
	//ratelimit:rule key="{userID(ctx)}" limit=1 per=1m
	Pointer(ctx *context.Context) error
	//2: the parameter ctx of Pointer is a *context.Context, which is no context; make it a context.Context
}
