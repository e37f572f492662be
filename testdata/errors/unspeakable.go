package x

import (
	"go/ast"
	"reflect"
	"testing"
)

//ratelimit:wrap
type T interface{ testing.TB }
//6: T cannot be implemented outside of package testing, because of its method private

//ratelimit:wrap
type R interface{ reflect.Type }
//6: R cannot be implemented outside of package reflect, because of its method common
//6: R cannot be implemented outside of package reflect, because of its method uncommon

//ratelimit:wrap
type N interface{ ast.Node }
