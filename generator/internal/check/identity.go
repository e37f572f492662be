package check

import (
	"slices"
	"strings"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
)

// identities are the names of parameters that identify the caller, in lower case and without underscores.
var identities = []string{
	"user", "userid", "username", "account", "accountid", "customer", "customerid", "tenant", "tenantid",
	"phone", "email", "ip", "clientip", "apikey", "deviceid",
}

// sharedByAll warns of a rule with one budget for everybody on a method with a parameter that identifies the caller. It does not
// warn if the rule has a name, or if another rule of the method distinguishes callers.
func (a *analysis) sharedByAll(m *model.Method) {
	who := identity(m)
	if who == "" {
		return
	}
	for _, r := range m.Rules {
		if _, everybody := same(r.Subject); !everybody || r.Limit.Distinct != "" {
			return
		}
	}
	for _, r := range m.Rules {
		if !r.OfType && r.Rule.Text("name") == "" && !a.literal[r.Pos] {
			a.found.Warn(argument(r, "key"), "all callers share this budget, whatever %s is; write key=\"{%[1]s}\", or give the rule a name if that is meant", who)
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
