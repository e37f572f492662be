package emit

import (
	"fmt"
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
)

// wrapper is an annotated type, with texts that its generated declarations share.
type wrapper struct {
	*planned
	*model.Wrapper
	params, args string // type parameters and type arguments, as in [K any] and [K]; "" for a type without them
	wrapped      string // the type of the wrapped value
	receiver     string // the name of the receiver; "" if a function is generated

	next, limits, handedOut string // the fields of the wrapper
}

// declarations returns the declarations for an annotated type. Each kind of type has its own shape.
func (p *planned) declarations(of *model.Wrapper) []*jen.Statement {
	w := &wrapper{planned: p, Wrapper: of}
	w.params, w.args = p.typeParams(of)
	w.wrapped = of.Object.Name() + w.args
	switch of.Kind {
	case model.Func:
		limit := w.limitFunc()
		return append(append(w.varsOf(of.Methods...), w.typeVar(), limit, w.rulesFunc()), w.handedOutFuncs()...)
	case model.Fields:
		limit := w.limitFields()
		return append(append(append(w.sharedVars(), w.varsOf(of.Methods...)...), w.typeVar(), limit, w.rulesFunc()), w.handedOutFuncs()...)
	case model.Guard:
		return w.guard()
	case model.Concrete:
		w.wrapped = "*" + w.wrapped
	}
	return w.wrapper()
}

// wrapper returns the declarations of a wrapper:
//
//	type LimitedSender struct {
//	var _ Sender = (*LimitedSender)(nil)
//	func NewLimitedSender(next Sender, limiter *ratelimit.Limiter) *LimitedSender {
//	func SenderRules() []ratelimit.Rule {
//	func (s *LimitedSender) RateLimits() []ratelimit.Rule {
//	var senderType = wrap.NewType("sms.Sender", senderSendRules)
//	var senderSendRules = wrap.NewRules("sms.Sender.Send",
//	func (s *LimitedSender) Send(ctx context.Context, phone string) error {
func (w *wrapper) wrapper() []*jen.Statement {
	w.next, w.limits, w.handedOut = fieldsOf(w.Wrapper)
	w.receiver = w.receiverName()
	if w.Part {
		return w.methods()
	}
	decls := []*jen.Statement{w.structType()}
	if w.Kind == model.Interface {
		decls = append(decls, w.assertion())
	}
	decls = append(decls, w.constructor(), w.rulesFunc())
	if !w.OwnRateLimits {
		decls = append(decls, w.rateLimits())
	}
	if !w.OwnUnlimited {
		decls = append(decls, w.unlimited())
	}
	decls = append(decls, w.handedOutFuncs()...)
	return append(append(append(decls, w.typeVar()), w.sharedVars()...), w.methods()...)
}

// methods returns the declarations of the methods of a wrapper:
//
//	var senderSendRules = wrap.NewRules("sms.Sender.Send",
//	func (s *LimitedSender) Send(ctx context.Context, phone string) error {
func (w *wrapper) methods() (decls []*jen.Statement) {
	outer := append(typeParamNames(w.Wrapper), w.receiver) // in the scope of each method
	for _, m := range w.Methods {
		wrapped := w.receiver + "." + w.next
		c := w.newCaller(m, wrapped, w.limitsOf(m, w.limits), wrapped+"."+m.Name, outer...)
		body := c.statements()
		decls = append(append(decls, w.varsOf(m)...), comment(methodDoc(w.Wrapper, m)).Id(c.head+c.signature()).Block(body))
	}
	return decls
}

// limitsOf returns the limits of a method, which are in a field of the wrapper. Those of a part follow from them:
//
//	serviceOpenRules.Of(s.limits)
func (w *wrapper) limitsOf(m *model.Method, field string) string {
	limits := w.receiver + "." + field
	if w.Part && len(m.Rules) > 0 {
		return w.rulesOf[m] + ".Of(" + limits + ")"
	}
	return limits
}

// rateLimits declares the method that returns the rules:
//
//	func (s *LimitedSender) RateLimits() []ratelimit.Rule {
func (w *wrapper) rateLimits() *jen.Statement {
	return comment("RateLimits returns the rules that the wrapper enforces.").
		Id(w.method("RateLimits")).Params().Id("[]" + w.ratelimit("Rule")).Block(jen.Return(jen.Id(w.RulesFunc + "()")))
}

// unlimited declares the method that returns the wrapped value:
//
//	func (s *LimitedSender) Unlimited() Sender {
func (w *wrapper) unlimited() *jen.Statement {
	doc := "Unlimited returns the value that the wrapper calls. No limit applies to calls of its methods."
	return comment(wrapped(doc)).Id(w.method("Unlimited")).Params().Id(w.wrapped).Block(jen.Return(jen.Id(w.receiver + "." + w.next)))
}

// handedOutFuncs declares the functions for values that wrappers hand out and take back.
func (w *wrapper) handedOutFuncs() (decls []*jen.Statement) {
	if w.HandOut != "" {
		decls = append(decls, w.handOutFunc())
	}
	if w.TakeBack != "" {
		decls = append(decls, w.takeBackFunc())
	}
	return decls
}

// method returns the beginning of the declaration of a method of the wrapper:
//
//	func (s *LimitedSender) Send
func (w *wrapper) method(name string) string {
	return "func (" + w.receiver + " *" + w.Name + w.args + ") " + name
}

// head returns the beginning of the declaration of the constructor or function, whose parameters have these names:
//
//	func NewLimitedSender(next Sender, limiter *ratelimit.Limiter)
func (w *wrapper) head(next, limiter string) string {
	begin := "func " + w.New + w.params
	return begin + brackets(begin+" *"+w.Name+w.args, next+" "+w.wrapped, limiter+" *"+w.ratelimit("Limiter"))
}

// structType declares the type of the wrapper:
//
//	type LimitedSender struct {
//		next   Sender
//		limits *wrap.Limits
//	}
func (w *wrapper) structType() *jen.Statement {
	var fields []jen.Code
	for _, t := range w.Embeds {
		fields = append(fields, jen.Id(w.imports.Type(t)))
	}
	if len(fields) > 0 {
		fields = append(fields, jen.Line())
	}
	fields = append(fields, jen.Id(w.next).Id(w.wrapped), jen.Id(w.limits).Id("*"+w.wrap("Limits")))
	if w.Kind == model.Interface && w.TakeBack != "" {
		fields = append(fields, jen.Id(w.handedOut).Bool())
	}
	return comment(typeDoc(w.Wrapper)).Type().Id(w.Name + w.params).Struct(fields...)
}

// constructor declares the function that returns a wrapper, whose fields have these names:
//
//	func NewLimitedSender(next Sender, limiter *ratelimit.Limiter) *LimitedSender {
//		return &LimitedSender{next: wrap.Next("sms.Sender", next), limits: senderType.On(limiter)}
//	}
func (w *wrapper) constructor() *jen.Statement {
	own := w.Name + w.args
	free := w.block.Inside()
	by, with := w.marks.Take(free, "next", "wrapped"), w.marks.Take(free, "limiter", "limits")
	value := literal("&"+own, w.next+": "+w.checked(by), w.limits+": "+w.on(with))
	doc := fmt.Sprintf("%s wraps %s with the limits declared on %s. Use the wrapper in its place:", w.New, by, link(w.Object.Name()))
	return comment(wrapped(doc) + example(w.Wrapper, by)).
		Id(w.head(by, with)).Op("*").Id(own).Block(jen.Return(jen.Id(value)))
}

// checked returns the wrapped value, which must not be nil:
//
//	wrap.Next("sms.Sender", next)
func (w *wrapper) checked(next string) string {
	return w.wrap("Next") + "(" + quote(w.Scope) + ", " + next + ")"
}

// on returns the limits of the type on a limiter:
//
//	senderType.On(limiter)
func (w *wrapper) on(limiter string) string { return w.typeOf[w.Wrapper] + ".On(" + limiter + ")" }

// assertion declares something that does not compile if the wrapper is outdated, with a comment that says what to do. For a generic
// type it is a function, which needs no type arguments:
//
//	var _ Sender = (*LimitedSender)(nil)
//	func _[K any]() {
func (w *wrapper) assertion() *jen.Statement {
	s := comment(wrapped("If this does not compile, " + w.Object.Name() + ` has changed: run "go tool ratelimit" in this directory.`))
	assert := jen.Var().Id("_").Id(w.wrapped).Op("=").Parens(jen.Op("*").Id(w.Name + w.args)).Parens(jen.Nil())
	if w.params == "" {
		return s.Add(assert)
	}
	return s.Func().Id("_" + w.params).Params().Block(assert)
}

// typeParams returns the type parameters and the type arguments of w. Both are "" for a type without them:
//
//	[K any]
//	[K]
func (p *planned) typeParams(w *model.Wrapper) (params, args string) {
	if len(w.TypeParams) == 0 {
		return "", ""
	}
	var declared []string
	for _, param := range w.TypeParams {
		constraint := p.imports.Type(param.Constraint())
		if strings.HasPrefix(constraint, "*") || strings.HasPrefix(constraint, "(") {
			constraint = "interface{ " + constraint + " }" // Go reads [P *int] as the length of an array
		}
		declared = append(declared, param.Obj().Name()+" "+constraint)
	}
	return "[" + strings.Join(declared, ", ") + "]", "[" + strings.Join(typeParamNames(w), ", ") + "]"
}

// comment returns the beginning of a declaration: its doc comment, or nothing if text is "". For example:
//
//	// SendCode sends a login code to phone.
func comment(text string) *jen.Statement {
	s := &jen.Statement{}
	if text = strings.TrimSpace(text); text == "" {
		return s
	}
	lines := strings.Split(text, "\n")
	withoutConstraints(lines)
	for i, l := range lines {
		lines[i] = strings.TrimRight("// "+l, " \t")
	}
	return s.Comment(strings.Join(lines, "\n")).Line()
}
