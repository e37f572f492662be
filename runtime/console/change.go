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

	"github.com/ratelimit-go/ratelimit/internal/decide"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/key"
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
	"undo":    {}, // see undo
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
	shown, actor := page{Form: r.PostForm}, fleet.Actor{By: by, Reason: strings.TrimSpace(r.PostForm.Get("reason"))}
	ctx, cancel := context.WithTimeout(ratelimit.WithActor(r.Context(), actor.By, actor.Reason), patience)
	defer cancel()
	shown.Done, err = c.obey(ctx, order{Request: r, actor: actor, of: c.limiterFor(r), key: r.PostForm.Get("key")})
	c.known.changes.forget()
	if err != nil {
		shown.Failed, shown.Wrong = err.Error(), fieldOf(err)
		w.WriteHeader(statusOf(err))
	}
	switch r.PostForm.Get("page") {
	case "rule":
		c.showRule(w, r, r.PostForm.Get("name"), shown)
	case "changes":
		c.showChanges(w, r, shown)
	default:
		c.showSubject(w, r, shown)
	}
}

// wrong is the error of a form that somebody filled in wrongly: in a field, or in none if that is "".
type wrong struct{ field, text string }

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

// fieldOf returns the field of a form that an error is about, or "".
func fieldOf(err error) string {
	if e, ok := errors.AsType[wrong](err); ok {
		return e.field
	}
	if e, ok := errors.AsType[*ratelimit.RuleError](err); ok {
		switch e.Argument {
		case "limit", "factor", "mode":
			return e.Argument
		case "until", "block", "pause":
			return "for"
		}
	}
	return ""
}

// obey checks what a form asks for, and does it.
func (c *console) obey(ctx context.Context, o order) (*done, error) {
	form := o.PostForm
	what, ok := orders[form.Get("do")]
	if !ok {
		return nil, wrong{"", fmt.Sprintf("found the order %.20q; expected one of the forms of this page", form.Get("do"))}
	}
	if o.actor.Reason == "" {
		return nil, wrong{"reason", "write a reason; it is for the list of changes"}
	}
	if problem := o.actor.Check(); problem != "" {
		return nil, wrong{"reason", problem}
	}
	if what.ends {
		length, err := parseFor(form.Get("for"))
		switch {
		case err != nil:
			return nil, wrong{"for", err.Error()}
		case length == 0 && form.Get("do") != "set":
			return nil, wrong{"for", "a " + form.Get("do") + " needs an end of at most 30d"}
		}
		o.length = length
	}
	if form.Get("do") == "undo" {
		return c.undo(ctx, o)
	}
	rules, at := c.known.rules.get(ctx)
	i := slices.IndexFunc(rules, func(u ratelimit.UsedRule) bool { return choice(u.Rule) == form.Get("rule") })
	switch {
	case i < 0 && at.Err != nil:
		return nil, at.Err
	case i < 0:
		return nil, wrong{"rule", "the rule is unknown; choose one of the list"}
	}
	o.rule = rules[i].Rule
	text, err := what.do(c, ctx, o)
	if err != nil {
		return nil, err
	}
	return &done{Text: text, Rule: o.rule.Name, Key: o.key, AllKeys: o.key == "" && o.rule.Key != "", Undo: c.undoable(ctx, o)}, nil
}

// undoable identifies what an order has just changed. It returns "" if that cannot be undone, or is not the last change any more.
func (c *console) undoable(ctx context.Context, o order) string {
	c.known.changes.forget()
	all, _ := c.known.changes.get(ctx)
	last, id := lastChange(all)
	if last.By != o.actor.By || last.Reason != o.actor.Reason || last.What != o.PostForm.Get("do") || last.Rule != fleet.SettingName(o.rule.Name) {
		return ""
	}
	return id
}

func (o order) request() ratelimit.Request { return ratelimit.Request{Rule: o.rule, Key: o.key} }

func (c *console) reset(ctx context.Context, o order) (string, error) {
	n, err := o.of.Reset(ctx, o.request())
	return count(n, "count") + " forgotten.", err
}

func (c *console) give(ctx context.Context, o order) (string, error) {
	n, err := strconv.ParseInt(o.PostForm.Get("permits"), 10, 64)
	if err != nil || n <= 0 {
		return "", wrong{"permits", fmt.Sprintf("write how many permits to give; found %.20q", o.PostForm.Get("permits"))}
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
			return "", wrong{"limit", fmt.Sprintf("write the limit as a number; found %.20q", text)}
		}
		v.Limit = &n
	}
	if text := form.Get("factor"); text != "" {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return "", wrong{"factor", fmt.Sprintf("write the factor as a number such as 1.5; found %.20q", text)}
		}
		v.Factor = n
	}
	for _, mode := range modes() {
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
func (c *console) undo(ctx context.Context, o order) (*done, error) {
	c.known.changes.forget()
	all, at := c.known.changes.get(ctx)
	if at.Err != nil {
		return nil, at.Err
	}
	last, id := lastChange(all)
	if id == "" || id != o.PostForm.Get("change") {
		return nil, wrong{"", "there was another change since; look at the list again"}
	}
	s := cmp.Or(last.Before, &fleet.Setting{Cleared: true})
	s.Kind, s.Rule, s.Key, s.AllKeys = last.Kind, last.Rule, last.Key, last.AllKeys()
	edit := fleet.Edit{Actor: o.actor, What: "undo", Settings: []*fleet.Setting{s}}
	if _, err := c.fleet.Change(ctx, edit); err != nil {
		return nil, err
	}
	(*decide.Limiter)(c.limiter).TellChange(ctx, edit.What, edit.Settings)
	return &done{Text: "Undone" + everywhere, Rule: last.Rule, Key: key.Shown(last.Key), AllKeys: s.AllKeys}, nil
}
