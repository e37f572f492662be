package x

//ratelimit:wrap name=Taken
//                    ^ the generated Taken would collide with the declaration in line 11 of x.go; choose another with //ratelimit:wrap name=
type X interface{ M() error }

//ratelimit:wrap
type Y interface{ M() error }
//6: the generated LimitedY would collide with the declaration in line 12 of x.go; choose another with //ratelimit:wrap name=

type Taken int
type LimitedY int

//ratelimit:wrap name=Same
//          ^ A has no rule and hands out nothing that has limits, so its wrapper would limit nothing
type A interface{ M() error }

//ratelimit:wrap name=Same
//                    ^ two wrappers would declare Same; name one of them with //ratelimit:wrap name=
//                    ^ two wrappers would declare NewSame; name one of them with //ratelimit:wrap name=
type B interface{ M() error }
