package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// order is one change that a form asks for.
type order struct {
	*http.Request
	actor  fleet.Actor
	of     *ratelimit.Limiter // takes the key as the form has it
	rule   ratelimit.Rule
	key    string
	length time.Duration // how long it is in force; 0 means for ever
}

// orders are the changes that forms may ask for, by their field do. Each returns what it did.
var orders = map[string]struct {
	ends bool // it needs an end
	do   func(*console, context.Context, order) (string, error)
}{
	"reset":   {false, (*console).reset},
	"give":    {false, (*console).give},
	"block":   {true, (*console).block},
	"unblock": {false, (*console).unblock},
	"pause":   {true, (*console).pause},
	"resume":  {false, (*console).resume},
	"set":     {true, (*console).set},
	"clear":   {false, (*console).clear},
	"undo":    {false, (*console).undo},
}

// change does what a form asks for, and answers with the page that it changed.
func (c *console) change(w http.ResponseWriter, r *http.Request) {
	if !parseForm(w, r) {
		return
	}
	by, err := c.actor(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	shown, actor := page{}, fleet.Actor{By: by, Reason: strings.TrimSpace(r.PostForm.Get("reason"))}
	ctx, cancel := context.WithTimeout(ratelimit.WithActor(r.Context(), actor.By, actor.Reason), patience)
	defer cancel()
	if shown.Done, err = c.obey(ctx, order{Request: r, actor: actor, of: c.limiterFor(r), key: r.PostForm.Get("key")}); err != nil {
		shown.Failed = err.Error()
		w.WriteHeader(statusOf(err))
	}
	c.known.changes.forget()
	switch r.PostForm.Get("page") {
	case "rule":
		c.showRule(w, r, r.PostForm.Get("name"), shown)
	case "changes":
		c.showChanges(w, r, shown)
	default:
		c.showSubject(w, r, shown)
	}
}

// wrong is the error of a form that somebody filled in wrongly.
type wrong struct{ text string }

func (e wrong) Error() string { return e.text }

func statusOf(err error) int {
	_, isRule := errors.AsType[*ratelimit.RuleError](err)
	_, isKey := errors.AsType[*ratelimit.KeyError](err)
	_, isWrong := errors.AsType[wrong](err)
	if isRule || isKey || isWrong {
		return http.StatusUnprocessableEntity
	}
	return http.StatusServiceUnavailable
}

// obey checks what a form asks for, and does it.
func (c *console) obey(ctx context.Context, o order) (string, error) {
	form := o.PostForm
	what, ok := orders[form.Get("do")]
	if !ok {
		return "", wrong{fmt.Sprintf("found the order %.20q; expected one of the forms of this page", form.Get("do"))}
	}
	if o.actor.Reason == "" {
		return "", wrong{"write a reason; it is for the list of changes"}
	}
	if problem := o.actor.Check(); problem != "" {
		return "", wrong{problem}
	}
	if what.ends {
		length, err := parseFor(form.Get("for"))
		switch {
		case err != nil:
			return "", wrong{err.Error()}
		case length == 0 && form.Get("do") != "set":
			return "", wrong{"a " + form.Get("do") + " needs an end of at most 30d"}
		}
		o.length = length
	}
	if form.Get("do") != "undo" {
		rules, at := c.known.rules.get(ctx)
		i := slices.IndexFunc(rules, func(u ratelimit.UsedRule) bool { return choice(u.Rule) == form.Get("rule") })
		if i < 0 {
			if at.Err != nil {
				return "", at.Err
			}
			return "", wrong{"the rule is unknown; choose one of the list"}
		}
		o.rule = rules[i].Rule
	}
	return what.do(c, ctx, o)
}

func (o order) request() ratelimit.Request { return ratelimit.Request{Rule: o.rule, Key: o.key} }

func (c *console) reset(ctx context.Context, o order) (string, error) {
	n, err := o.of.Reset(ctx, o.request())
	return count(n, "count") + " forgotten.", err
}

func (c *console) give(ctx context.Context, o order) (string, error) {
	n, err := strconv.ParseInt(o.PostForm.Get("permits"), 10, 64)
	if err != nil || n <= 0 {
		return "", wrong{fmt.Sprintf("write how many permits to give; found %.20q", o.PostForm.Get("permits"))}
	}
	return "Up to " + count(int(n), "permit") + " given back.", o.of.Give(ctx, n, o.request())
}

func (c *console) block(ctx context.Context, o order) (string, error) {
	return "Blocked for " + span(o.length) + everywhere, o.of.Block(ctx, o.length, o.request())
}

func (c *console) unblock(ctx context.Context, o order) (string, error) {
	return "Not blocked any more" + everywhere, o.of.Unblock(ctx, o.request())
}

func (c *console) pause(ctx context.Context, o order) (string, error) {
	return "Paused for " + span(o.length) + everywhere, o.of.Pause(ctx, o.length, o.request())
}

func (c *console) resume(ctx context.Context, o order) (string, error) {
	return "Not paused any more" + everywhere, o.of.Resume(ctx, o.request())
}

// everywhere says how soon other processes follow.
const everywhere = ", everywhere within 2 s."

// set overrides a rule for all keys, or for one.
func (c *console) set(ctx context.Context, o order) (string, error) {
	form, v := o.PostForm, ratelimit.Override{Key: o.key}
	if text := form.Get("limit"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return "", wrong{fmt.Sprintf("write the limit as a number; found %.20q", text)}
		}
		v.Limit = &n
	}
	if text := form.Get("factor"); text != "" {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return "", wrong{fmt.Sprintf("write the factor as a number such as 1.5; found %.20q", text)}
		}
		v.Factor = n
	}
	for _, mode := range []ratelimit.Mode{ratelimit.ModeEnforce, ratelimit.ModeShadow} {
		if form.Get("mode") == mode.String() {
			v.Mode = &mode
		}
	}
	if o.length > 0 {
		v.Until = time.Now().Add(o.length)
	}
	return "Set" + everywhere, o.of.Overrides().Set(ctx, fleet.SettingName(o.rule.Name), v)
}

func (c *console) clear(ctx context.Context, o order) (string, error) {
	return "As declared again" + everywhere, o.of.Overrides().Clear(ctx, fleet.SettingName(o.rule.Name), o.key)
}

// undo brings back what was in force before the last change.
func (c *console) undo(ctx context.Context, o order) (string, error) {
	c.known.changes.forget()
	all, at := c.known.changes.get(ctx)
	if at.Err != nil {
		return "", at.Err
	}
	last, id := lastChange(all)
	if id == "" || id != o.PostForm.Get("change") {
		return "", wrong{"there was another change since; look at the list again"}
	}
	s := cmp.Or(last.Before, &fleet.Setting{Cleared: true})
	s.Kind, s.Rule, s.Key, s.AllKeys = last.Kind, last.Rule, last.Key, last.AllKeys()
	_, err := c.fleet.Change(ctx, fleet.Edit{Actor: o.actor, What: "undo", Settings: []*fleet.Setting{s}})
	return "Undone" + everywhere, err
}
