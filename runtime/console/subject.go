package console

import (
	"cmp"
	"context"
	"crypto/rand"
	"net/http"
	"slices"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/decide"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/key"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// use is what a subject has used under one rule.
type use struct {
	ratelimit.UsedRule
	InForce  ratelimit.Rule
	AsOf     time.Time      // when a process said that the last call brought the limit of InForce; or zero
	asked    ratelimit.Rule // the rule, with that limit
	Quota    ratelimit.Quota
	Refused  bool
	Next     time.Duration  // until the next permit; 0 if there is one now, or if that is not known
	Never    bool           // the limit is 0
	Override *fleet.Setting // of the key, or else of the rule; nil if neither is set
	Block    *fleet.Setting // set by hand; or nil
	Pause    *fleet.Setting // set by hand; or nil
	Left     time.Duration  // of the block
	state    string         // the key of the first count
	Unknown  bool           // a block or a limit of 0 hides the count
	Strip    *strip         // or nil
	Err      error
}

// Used is how many permits are used.
func (u use) Used() int64 { return u.Quota.Limit - u.Quota.Remaining }

// Percent is the used part of the limit, 0 to 100.
func (u use) Percent() int64 {
	if u.Quota.Limit == 0 {
		return 0
	}
	return min(100, max(0, 100*u.Used()/u.Quota.Limit))
}

// choice identifies a rule in a form.
func choice(r ratelimit.Rule) string { return r.Name + " " + r.Window() + " " + r.Key }

type subjectPage struct {
	Key   string // as searched for; "" before a search
	Shown bool   // the key has the form in which pages show keys
	All   bool   // rules without a key are wanted
	Uses  []use
	More  int // rules that are left out
	Seen  seen
	Fresh bool // nothing is counted, and nothing set, for this subject

	NoStrips error // why strips are missing
}

// subject shows one subject under all rules. The form has the field key, or all for the rules without a key.
func (c *console) subject(w http.ResponseWriter, r *http.Request) {
	if !parseForm(w, r) {
		return
	}
	c.showSubject(w, r, page{})
}

// limiterFor returns the limiter that understands the key in a request's form: as people write it, or as pages show it.
func (c *console) limiterFor(r *http.Request) *ratelimit.Limiter {
	if r.PostForm.Get("shown") != "" {
		return c.view
	}
	return c.limiter
}

// parseForm parses the form of a request. It answers the request if it cannot.
func parseForm(w http.ResponseWriter, r *http.Request) bool {
	if err := r.ParseForm(); err != nil {
		http.Error(w, "the form cannot be read", http.StatusBadRequest)
		return false
	}
	return true
}

func (c *console) showSubject(w http.ResponseWriter, r *http.Request, shown page) {
	p := subjectPage{Key: r.PostForm.Get("key"), Shown: r.PostForm.Get("shown") != "", All: r.PostForm.Get("all") != ""}
	shown.Title, shown.Screen, shown.OfKey = "Subject", "subject", true
	shown.Back = []hidden{{"page", "subject"}}
	for _, name := range []string{"key", "shown", "all"} {
		if value := r.PostForm.Get(name); value != "" {
			shown.Back = append(shown.Back, hidden{name, value})
		}
	}
	if p.Key != "" || p.All {
		p.look(r.Context(), c, c.limiterFor(r))
	}
	for _, u := range p.Uses {
		shown.Choices = append(shown.Choices, u.Rule)
		if shown.Chosen == "" && (u.Refused || u.Never || u.Left > 0) {
			shown.Chosen = choice(u.Rule)
		}
	}
	shown.Chosen, shown.Data = cmp.Or(shown.Form.Get("rule"), shown.Chosen), p
	c.show(w, "subject", shown)
}

// look asks the store for the counts of the subject, in one run.
func (p *subjectPage) look(ctx context.Context, c *console, l *ratelimit.Limiter) {
	rules, at := c.known.rules.get(ctx)
	p.Seen = at
	c.follow(ctx)
	reported := c.recent(ctx)
	for _, rule := range rules {
		if (rule.Key == "") != p.All {
			continue
		}
		if len(p.Uses) == maxRows {
			p.More++
			continue
		}
		p.Uses = append(p.Uses, c.use(l, rule, p.Key, reported))
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := peek(ctx, l, p.Uses, p.Key); err != nil {
		p.Seen = seen{Err: err}
		return
	}
	p.NoStrips = c.addStrips(ctx, l, p.Uses, p.Key)
	p.Seen = seen{At: time.Now()}
	p.Fresh = !slices.ContainsFunc(p.Uses, func(u use) bool {
		return u.Used() > 0 || u.Block != nil || u.Pause != nil || u.Override != nil || u.Unknown || u.Err != nil
	})
}

// use returns what is in force for a subject under a rule.
func (c *console) use(l *ratelimit.Limiter, rule ratelimit.UsedRule, text string, reported recent) use {
	u := use{UsedRule: rule, asked: rule.Rule}
	states, err := l.StateKeys(ratelimit.Request{Rule: rule.Rule, Key: text})
	if u.Err = err; err != nil {
		return u
	}
	u.state = states[0]
	parts, _ := key.Split(u.state)
	if u.InForce, u.Err = l.RuleFor(ratelimit.Request{Rule: rule.Rule, Key: text}); u.InForce.Computed {
		u.asked, u.AsOf = reported.Known(rule.Rule, u.InForce.Window(), parts.Subject)
		u.InForce, u.Err = l.RuleFor(ratelimit.Request{Rule: u.asked, Key: text})
	}
	if u.Err != nil {
		return u
	}
	of := c.fleet.InForce().Of(fleet.SettingName(rule.Name))
	own := of.OfKey(parts.Subject)
	u.Override, u.Block, u.Pause = cmp.Or(own.Override, of.All), own.Block, own.Pause
	if u.Block != nil {
		u.Left = max(0, u.Block.Until.Sub(c.fleet.Now()))
	}
	u.Never = u.InForce.Limit == 0 && !u.InForce.Computed
	u.Unknown = u.Left > 0 || u.Never
	return u
}

// peek asks for the quotas of all rules that a store has to be asked for. Rules may share a count.
func peek(ctx context.Context, l *ratelimit.Limiter, uses []use, text string) error {
	var requests []ratelimit.Request
	var of [][]*use               // by request
	requested := map[string]int{} // by state
	for i := range uses {
		u := &uses[i]
		if u.Unknown || u.Err != nil {
			continue
		}
		n, ok := requested[u.state]
		if !ok {
			request := ratelimit.Request{Rule: u.asked, Key: text}
			if u.Distinct != "" {
				request.Member = rand.Text() // a member that is not counted yet
			}
			n = len(requests)
			requested[u.state] = n
			requests, of = append(requests, request), append(of, nil)
		}
		of[n] = append(of[n], u)
	}
	if len(requests) == 0 {
		return nil
	}
	d, err := l.Peek(context.WithValue(ctx, decide.Looks, true), requests...)
	if err != nil {
		return err
	}
	for i, q := range d.Quotas {
		for _, u := range of[i] {
			u.Quota = q
			for _, v := range d.Violations {
				if q.Rule == v.Rule && q.Window == v.Window {
					u.Refused, u.Next, u.Never = true, v.RetryAfter, v.Never
				}
			}
		}
	}
	return nil
}
