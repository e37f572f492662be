package collect

import (
	"go/types"
	"slices"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/generator/internal/reach"
	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// handOut finds the results of methods that get the limits of their types, such as that of WithTx(Tx) Repo, and the arguments of
// functions that are passed to methods, such as that of WithinTx(func(Repo) error).
func (c *collector) handOut(files, others []*model.File) {
	h := &handout{collector: c, wrappers: map[types.Object]*model.Wrapper{}, outputs: map[types.Object]*model.File{}}
	for _, f := range append(others, files...) {
		for _, w := range f.Wrappers {
			h.wrappers[w.Object], h.outputs[w.Object] = w, f
		}
	}
	for _, f := range files {
		h.file = f
		for _, w := range f.Wrappers {
			for _, m := range w.Methods {
				h.method(w, m)
			}
		}
	}
}

// handout looks for annotated types in signatures.
type handout struct {
	*collector
	wrappers map[types.Object]*model.Wrapper
	outputs  map[types.Object]*model.File
	file     *model.File // of the method

	left []string // what a method hands out without limits
}

// method sets which results of m, and which arguments, get limits. It warns of those that cannot.
func (h *handout) method(w *model.Wrapper, m *model.Method) {
	returns, passes := map[int]*model.Limited{}, map[int]map[int]*model.Limited{}
	h.left = nil
	results, params := m.Results, m.Params
	if w.Kind == model.Guard { // which hands out nothing
		results, params = nil, nil
	}
	for i, r := range results {
		if l := h.limited(r.Type, w.Kind == model.Concrete); l != nil {
			returns[i] = l
		}
	}
	for i, p := range params {
		if taken := h.passed(p.Type); len(taken) > 0 {
			passes[i] = taken
		}
	}
	switch {
	case !m.Plain.IsZero() && len(returns)+len(passes)+len(h.left) == 0:
		h.found.Warn(m.Plain.Verb.Pos, "plain has no effect: %s hands out nothing that has limits", m.Name)
	case !m.Plain.IsZero():
		return
	}
	m.Returns, m.Passes = returns, passes
	const why = "%s hands out %s without its limits"
	for _, of := range h.left {
		if m.Promoted {
			h.found.Note(w.Pos, why, m.Name, of)
		} else {
			h.found.Warn(m.Pos, why+"; write //ratelimit:plain above it if that is meant", m.Name, of)
		}
	}
}

// limited returns the wrapper for a value of type t. If t only contains an annotated type, or is a struct where the signature has to stay
// as it is, limited notes that and returns nil.
func (h *handout) limited(t types.Type, structs bool) *model.Limited {
	if l := h.annotated(t); l != nil && (structs || l.Kind == model.Interface) {
		return l
	}
	if reach.Mentions(t, func(t types.Type) bool { return h.annotated(t) != nil }) {
		h.left = append(h.left, types.TypeString(t, types.RelativeTo(h.pkg.Types)))
	}
	return nil
}

// passed returns the parameters of a func of type t that get limits.
func (h *handout) passed(t types.Type) map[int]*model.Limited {
	taken := map[int]*model.Limited{}
	sig, ok := t.Underlying().(*types.Signature)
	if !ok {
		reach.Mentions(t, func(t types.Type) bool {
			sig, ok := t.(*types.Signature)
			return ok && h.limited(sig.Params(), false) == nil && len(h.left) > 0
		})
		return nil
	}
	for i := range sig.Params().Len() {
		if l := h.limited(sig.Params().At(i).Type(), false); l != nil {
			taken[i] = l
		}
	}
	return taken
}

// annotated returns the wrapper for t if t is an annotated interface, or an annotated struct or a pointer to one. It returns nil if the
// wrapper is declared in a test, but the method is not.
func (h *handout) annotated(t types.Type) *model.Limited {
	l := &model.Limited{Value: true}
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t, l.Value = p.Elem(), false
	}
	for l.Wrapper == nil {
		n, ok := t.(interface {
			Obj() *types.TypeName
			TypeArgs() *types.TypeList
		})
		if !ok {
			return nil
		}
		alias, isAlias := t.(*types.Alias)
		switch l.Wrapper = h.wrappers[n.Obj()]; {
		case l.Wrapper != nil:
			l.Args = slices.Collect(n.TypeArgs().Types())
		case isAlias:
			t = alias.Rhs()
		default:
			return nil
		}
	}
	inTest := func(f *model.File) bool { return (&source.File{Path: f.Source}).IsTest() }
	isValue := l.Kind == model.Concrete || l.Kind == model.Interface && l.Value
	if !isValue || inTest(h.outputs[l.Object]) && !inTest(h.file) || len(l.Rules) == 0 && !limits(l.Wrapper) {
		return nil
	}
	return l
}

// limits reports whether a method of w has a rule.
func limits(w *model.Wrapper) bool {
	return slices.ContainsFunc(w.Methods, func(m *model.Method) bool { return len(m.Rules) > 0 })
}
