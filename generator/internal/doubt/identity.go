package doubt

import (
	"go/types"
	"slices"
	"strings"

	"github.com/ratelimit-go/ratelimit/generator/internal/expr"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
)

// identities are the names of parameters that identify the caller, in lower case and without underscores.
var identities = []string{
	"user", "userid", "username", "account", "accountid", "customer", "customerid", "tenant", "tenantid",
	"phone", "email", "ip", "clientip", "apikey", "deviceid",
}

// sharedByAll warns of a rule with one budget for everybody on a method with a parameter that identifies the caller. It does not
// warn if the rule has a name, if another rule of the method distinguishes callers, or if sharedAnchor warns of the rule.
func (a *analysis) sharedByAll(m *model.Method) {
	who := identity(m)
	if who == "" {
		return
	}
	for _, r := range m.Rules {
		if _, everybody := same(r.Subject); !everybody || r.Declared.Distinct != "" {
			return
		}
	}
	for _, r := range m.Rules {
		if !r.OfType && r.Rule.Text("name") == "" && !a.literal[r.Pos] && !differs(r.Anchor) {
			a.found.Warn(r.At("key"), "all callers share this budget, whatever %s is; write key=\"{%[1]s}\", or give the rule a name if that is meant", who)
		}
	}
}

// identity returns the first parameter of m that identifies the caller and can be used in a key, or "".
func identity(m *model.Method) string {
	for _, p := range m.Params {
		if !slices.Contains(identities, strings.ToLower(strings.ReplaceAll(p.Name, "_", ""))) {
			continue
		}
		if right, _ := isIsland(p.Name, m); right {
			return p.Name
		}
	}
	return ""
}

// freeTexts are the names of parameters and fields that people fill with any text, in lower case.
var freeTexts = []string{"query", "body", "text", "message", "comment"}

// freeText warns of a key that only depends on free text: a text that differs in one letter has a budget of its own. An expression such as
// lower(query) or hash(query) is left alone. A rule with a name gets no warning.
func (a *analysis) freeText(r *model.Rule, m *model.Method) {
	text := ""
	for _, p := range r.Subject {
		name := p.Expr[strings.LastIndex(p.Expr, ".")+1:]
		switch {
		case p.Expr == "":
		case !slices.Contains(freeTexts, strings.ToLower(name)) || !isTextOf(name, p.Expr, m):
			return
		default:
			text = p.Expr
		}
	}
	if text != "" && r.Rule.Text("name") == "" {
		a.found.Warn(r.At("key"), "key: %s is free text, and a text that differs in one letter has a budget of its own; "+
			"write {lower(%[1]s)} or a part of it, or give the rule a name if that is meant", text)
	}
}

// isTextOf reports whether an expression is a field of that name, or a parameter of m that is a string.
func isTextOf(name, expression string, m *model.Method) bool {
	if name != expression {
		return true
	}
	return slices.ContainsFunc(m.Params, func(p expr.Param) bool {
		return p.Name == name && types.Identical(p.Type.Underlying(), types.Typ[types.String])
	})
}
