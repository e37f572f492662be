package collect

import (
	"go/types"
	"maps"
	"slices"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/generator/internal/names"
	"github.com/ratelimit-go/ratelimit/generator/internal/reach"
)

// handOut finds the values of annotated types that methods hand out, such as the result of Begin() (Tx, error) and the argument of do in
// WithinTx(do func(Repo) error), and the values that methods take back, such as the argument of Save(tx Tx). It warns of what the methods in
// files hand out without limits.
func (c *collector) handOut(files, others []*model.File) {
	all := slices.Concat(files, others)
	h := &handout{collector: c, annotated: annotatedIn(c.fset, all)}
	for _, f := range all {
		for _, w := range f.Wrappers {
			if c.block.passed[w.Object.Name()] && w.Kind != model.Guard {
				h.pass(w)
			}
		}
	}
	h.methods(all)
	h.methods(all) // once more, as values of an interface are taken back only if some method hands them out
	for _, f := range files {
		for _, w := range f.Wrappers {
			passes := func(m *model.Method) bool { return len(m.Returns)+len(m.Takes) > 0 }
			if w.Wrap.IsValid() && !slices.ContainsFunc(w.Methods, passes) {
				c.found.Add(w.Wrap, "%s has no rule and hands out nothing that has limits, so its wrapper would limit nothing", w.Object.Name())
			}
			for _, m := range w.Methods {
				c.warnOfUnlimited(w, m)
			}
			h.asking = f
			h.noteFields(w)
		}
	}
}

// noteFields notes the fields of a struct of funcs that are values of annotated types: the limited struct has them as they are.
func (h *handout) noteFields(w *model.Wrapper) {
	if w.Kind != model.Fields {
		return
	}
	for f := range w.Object.Type().Underlying().(*types.Struct).Fields() {
		if _, isFunc := f.Type().Underlying().(*types.Signature); !isFunc && h.limited(f.Type()) != nil {
			h.found.Note(w.Pos, "what %s returns has the field %s without the limits of its type", w.New, f.Name())
		}
	}
}

// warnOfUnlimited warns of what m hands out without limits. About a promoted method it is a note, as there is no place for plain.
func (c *collector) warnOfUnlimited(w *model.Wrapper, m *model.Method) {
	const why = "%s hands out %s without its limits"
	for _, of := range m.Unlimited {
		if m.Promoted {
			c.found.Note(w.Pos, why, m.Name, of)
		} else {
			c.found.Warn(m.Pos, why+"; write //ratelimit:plain above it if that is meant", m.Name, of)
		}
	}
	if !m.Plain.IsZero() && !m.PlainMatters {
		c.found.Warn(m.Plain.Verb.Pos, "plain has no effect: %s hands out nothing that has limits", m.Name)
	}
}

// handout looks for annotated types in the signatures of methods.
type handout struct {
	*collector
	*annotated

	from      reach.From       // the place of the method
	structs   bool             // the signature of the wrapper's method may have wrappers in place of structs
	out, back []*model.Wrapper // the types of values that the method hands out and takes back
	unlimited []string         // what the method hands out without limits
}

func (h *handout) methods(files []*model.File) {
	for _, f := range files {
		h.asking = f
		for _, w := range f.Wrappers {
			h.from, h.structs = reach.From{Package: h.pkg.Types, TypeParams: w.TypeParams}, w.Kind == model.Concrete
			for _, m := range w.Methods {
				if w.Kind != model.Guard { // which hands out nothing
					h.method(w, m)
				}
			}
		}
	}
}

// method sets which results and parameters of m, a method of w, change, unless m is plain.
func (h *handout) method(w *model.Wrapper, m *model.Method) {
	h.out, h.back, h.unlimited = nil, nil, nil
	if w.Kind == model.Fields { // whose func has the rules of the field, and not those of the field's type
		if f, _, _ := types.LookupFieldOrMethod(w.Object.Type(), false, h.pkg.Types, m.Name); f != nil && h.limited(f.Type()) != nil {
			h.leave(f.Type(), true)
		}
	}
	returns, takes := map[int]*model.Passage{}, map[int]*model.Passage{}
	for i, r := range m.Results {
		if p := h.value(r.Type, true, h.structs); p != nil {
			returns[i] = p
		} else {
			h.leave(r.Type, true)
		}
	}
	for i, param := range m.Params {
		p := h.value(param.Type, false, h.structs)
		if p == nil {
			p = h.through(param.Type, false, nil)
		}
		if p != nil {
			takes[i] = p
		}
	}
	if !m.Plain.IsZero() {
		m.PlainMatters = len(returns)+len(takes)+len(h.unlimited) > 0
		return
	}
	m.Returns, m.Takes, m.Unlimited = returns, takes, h.unlimited
	for _, w := range h.out {
		w.HandOut = h.nameFor(w, "handOut")
	}
	for _, w := range h.back {
		w.TakeBack = h.nameFor(w, "takeBack")
	}
}

// pass gives w the functions for values that are handed out and taken back. Methods of other builds may need them, so every build has them.
func (h *handout) pass(w *model.Wrapper) {
	w.HandOut = h.nameFor(w, "handOut")
	if w.Kind == model.Interface || w.Kind == model.Concrete {
		w.TakeBack = h.nameFor(w, "takeBack")
	}
}

// nameFor returns the name of a generated function for values of a type, which begins with a verb. If the first name is that of something else,
// such as of the function for Tx when the type is tx, it is the second one:
//
//	handOutTx
//	handOut_tx
func (h *handout) nameFor(w *model.Wrapper, verb string) string {
	own, name := w.Object.Name(), names.Upper(w.Object.Name())
	taken := names.NewScope(slices.AppendSeq(slices.Collect(maps.Keys(h.block.declared)), maps.Keys(h.block.imported))...)
	if own != name && slices.Contains(h.block.annotated, name) {
		taken.Reserve(verb + name)
	}
	return taken.Take(verb+name, verb+"_"+own)
}

// through returns what becomes of a value of type t that a wrapper passes through: out, to the caller of a method, or in, to its
// implementation. What a func gets goes the other way than the func. The value is in the funcs of types named.
func (h *handout) through(t types.Type, out bool, named []types.Type) *model.Passage {
	if p := h.value(t, out, false); p != nil {
		return p
	}
	if s, ok := t.(*types.Slice); ok && !out {
		if p := h.value(s.Elem(), false, false); p != nil {
			return &model.Passage{Limited: p.Limited, Many: true}
		}
	}
	sig, ok := t.Underlying().(*types.Signature)
	switch {
	case ok && reach.Mentions(sig, isUnknown):
		return nil
	case !ok, slices.Contains(named, t), !h.from.CanName(sig): // a func literal has the types of sig
		h.leave(t, out)
		return nil
	}
	some := func(values *types.Tuple, out bool) map[int]*model.Passage {
		found := map[int]*model.Passage{}
		for i := range values.Len() {
			if p := h.through(values.At(i).Type(), out, append(named, t)); p != nil {
				found[i] = p
			}
		}
		return found
	}
	p := &model.Passage{Params: some(sig.Params(), !out), Results: some(sig.Results(), out)}
	if len(p.Params)+len(p.Results) == 0 {
		return nil
	}
	return p
}

// value returns what becomes of a value of an annotated type, or nil. A func cannot be taken back, as a limited func looks like any other.
func (h *handout) value(t types.Type, out, structs bool) *model.Passage {
	l := h.limited(t)
	switch {
	case l == nil || l.Kind == model.Concrete && !structs:
		return nil
	case out:
		h.out = append(h.out, l.Wrapper)
	case l.Kind == model.Concrete || l.Kind == model.Interface && l.HandOut != "":
		h.back = append(h.back, l.Wrapper)
	default:
		return nil
	}
	return &model.Passage{Limited: l}
}

// leave notes t if a value of it hands out values of annotated types that stay without limits.
func (h *handout) leave(t types.Type, out bool) {
	if (&contents{h.annotated, h.pkg.Types, map[content]bool{}}).handsOut(t, out) {
		h.unlimited = append(h.unlimited, types.TypeString(t, types.RelativeTo(h.pkg.Types)))
	}
}
