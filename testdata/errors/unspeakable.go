package x

import (
	"go/ast"
	"reflect"
	"testing"
)

//ratelimit:wrap
type T interface{ testing.TB }
//6: T cannot be implemented outside of package testing, because of its method private; that package exports no interface with just its unexported methods, which the wrapper could embed

//ratelimit:wrap
type R interface{ reflect.Type }
//6: R cannot be implemented outside of package reflect, because of its method common; that package exports no interface with just its unexported methods, which the wrapper could embed

//ratelimit:wrap
//          ^ N has no rule and hands out nothing that has limits, so its wrapper would limit nothing
type N interface{ ast.Node }
