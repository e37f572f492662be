package wrap

import (
	"reflect"
	"slices"

	"github.com/ratelimit-go/ratelimit/internal/decide"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// Type are the rules of a type: those of each of its methods.
type Type struct {
	of      decide.Type
	methods []*Rules
	added   []*Type // one for each method that only some builds have
}

// NewType returns the rules of a type, pkg.Type, whose methods have these rules. Rules are of one type only.
func NewType(name string, methods ...*Rules) *Type {
	t := &Type{of: decide.Type{Name: name}, methods: methods}
	for i, r := range methods {
		r.of, r.index = t, i
		t.of.Methods = append(t.of.Methods, r.prepared)
	}
	return t
}

// Add adds the rules of a method that only some builds have, and returns them. It must be called when the package is initialized. Wrappers that
// the package makes earlier have these rules, too.
func (t *Type) Add(method *Rules) *Rules {
	t.added = append(t.added, NewType(t.of.Name, method))
	return method
}

// Rules returns the rules of the type, each once.
func (t *Type) Rules() []ratelimit.Rule {
	methods := slices.Clone(t.methods)
	for _, added := range t.added {
		methods = append(methods, added.methods...)
	}
	var all []ratelimit.Rule
	for _, m := range methods {
		for _, r := range m.rules {
			if !slices.Contains(all, r) {
				all = append(all, r)
			}
		}
	}
	return all
}

// Limits are what the methods of a type ask of one limiter. Each wrapper holds them.
type Limits decide.Limits

// limiter returns the limiter of the limits.
func (l *Limits) limiter() *decide.Limiter { return (*decide.Limits)(l).Limiter() }

// Limiter returns the limiter of the limits.
func (l *Limits) Limiter() *ratelimit.Limiter { return (*ratelimit.Limiter)(l.limiter()) }

// open starts a call of a method of the type.
func (l *Limits) open(rules *Rules, givesBack bool) *decide.Call {
	return (*decide.Limits)(l).Method(rules.index).Open(givesBack)
}

// On returns the limits of the type on a limiter, the same ones each time. It panics if the limiter is nil.
func (t *Type) On(l *ratelimit.Limiter) *Limits {
	needLimiter(t.of.Name, l)
	for _, added := range t.added {
		added.On(l) // the limiter notes what will be called
	}
	return (*Limits)((*decide.Limiter)(l).LimitsOf(&t.of))
}

// Of returns the limits of rules that [Type.Add] has added to the type of l.
func (r *Rules) Of(l *Limits) *Limits { return (*Limits)(l.limiter().LimitsOf(&r.of.of)) }

// On returns the limits of the rules' type. Rules of no type, such as those of a middleware, have limits of their own, new ones each time. On panics
// if the limiter is nil.
func (r *Rules) On(l *ratelimit.Limiter) *Limits {
	if r.of != nil {
		return r.of.On(l)
	}
	needLimiter(r.method, l)
	return (*Limits)((*decide.Limiter)(l).NewLimits(&decide.Type{Name: r.method, Methods: []*decide.Rules{r.prepared}}))
}

func needLimiter(of string, l *ratelimit.Limiter) {
	if l == nil {
		panic("limits of " + of + ": the limiter is nil")
	}
}

// TakeBack returns values without the limits with which wrappers handed them out, as back returns one value. If no value changes, it returns
// values itself.
func TakeBack[T any](values []T, back func(T) T) []T {
	changed := func(v T) bool { return reflect.TypeOf(back(v)) != reflect.TypeOf(v) }
	if !slices.ContainsFunc(values, changed) {
		return values
	}
	taken := make([]T, len(values))
	for i, v := range values {
		taken[i] = back(v)
	}
	return taken
}

// ValueOf returns what p points to, or a zero value if p is nil.
func ValueOf[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
