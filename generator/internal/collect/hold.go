package collect

import (
	"go/types"
	"slices"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/expr"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/generator/internal/reach"
)

// setHold sets which result of m keeps the permits until it has ended. That is for rules of concurrency.
func (c *methods) setHold(m *model.Method) {
	rules := slices.DeleteFunc(slices.Clone(m.Rules), func(r *model.Rule) bool { return !r.Declared.Releases() || r.Bad })
	agree := c.same(rules, "hold", " that count calls that run", func(r *model.Rule) any { return r.Hold.Value })
	if agree && len(rules) > 0 && !rules[0].Hold.IsZero() {
		m.Hold = c.holdBy(m, rules[0].Hold)
	}
}

// holdBy returns how the result with this name holds permits. It reports an error if it cannot.
func (c *methods) holdBy(m *model.Method, name annotations.Text) *model.Hold {
	var valid []string
	for i, r := range m.Results {
		if r.Name != name.Value {
			valid = append(valid, r.Name)
			continue
		}
		h := Holds(r)
		if h == nil {
			c.found.Add(name.Pos, "hold: %s has the type %s, which cannot hold a permit; expected an interface with Close() error or Recv() (T, error), an iter.Seq, "+
				"an iter.Seq2 or an *http.Response. To hold a permit longer, take it by hand with Limiter.Wait and give it back with Decision.Release",
				name.Value, c.text(r.Type))
			return nil
		}
		h.Result = i
		return h
	}
	c.found.Add(name.Pos, "hold: %s has no result %s%s", m.Name, name.Value, annotations.Suggest(name.Value, valid))
	return nil
}

// Holds returns how a result can hold permits, without its index, or nil if it cannot.
func Holds(result expr.Param) *model.Hold {
	t := types.Unalias(result.Type)
	if p, ok := t.(*types.Pointer); ok && reach.IsNamed(p.Elem(), "net/http", "Response") {
		return &model.Hold{Body: true}
	}
	for _, seq := range []string{"Seq", "Seq2"} {
		if reach.IsNamed(t, "iter", seq) {
			return &model.Hold{Func: "Hold" + seq}
		}
	}
	if _, ok := t.(*types.Named); !ok || !types.IsInterface(t) {
		return nil
	}
	h := &model.Hold{}
	for m := range t.Underlying().(*types.Interface).Methods() {
		params, results := m.Signature().Params(), m.Signature().Results()
		last := results.Len() - 1
		switch {
		case params.Len() > 0 || last < 0 || !types.Identical(results.At(last).Type(), errorType):
		case m.Name() == "Close" && last == 0:
			h.Closes = true
		case m.Name() == "Recv" && last == 1:
			h.Receives = results.At(0).Type()
		}
	}
	if !h.Closes && h.Receives == nil {
		return nil
	}
	return h
}
