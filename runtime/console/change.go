package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/operate"
	"github.com/ratelimit-go/ratelimit/internal/period"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// order is one change that a form asks for.
type order struct {
	*http.Request
	actor  fleet.Actor
	target operate.Target
	length time.Duration // how long it is in force; 0 means for ever
}

// orders are the changes that forms may ask for, by their field do. Each returns what it did.
var orders = map[string]struct {
	ends bool // it needs an end
	do   func(*operate.Prefix, context.Context, order) (string, error)
}{
	"reset":   {false, reset},
	"give":    {false, give},
	"block":   {true, block},
	"unblock": {false, unblock},
	"pause":   {true, pause},
	"resume":  {false, resume},
	"set":     {true, set},
	"clear":   {false, clearOverride},
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
	shown, o := page{Form: r.PostForm}, order{Request: r, actor: fleet.Actor{By: by, Reason: strings.TrimSpace(r.PostForm.Get("reason"))}}
	ctx := r.Context()
	if shown.Done, err = c.obey(ctx, o); err != nil {
		var status int
		shown.Failed, shown.Wrong, status = blame(err)
		shown.Unsure = status == http.StatusServiceUnavailable // the store may have made the change
		w.WriteHeader(status)
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

// blame returns what to say of an error, the field of the form that it is about, if it is one, and the status of the answer.
func blame(err error) (text, field string, status int) {
	status = http.StatusUnprocessableEntity
	if mistake, ok := errors.AsType[wrong](err); ok {
		return mistake.text, mistake.field, status
	}
	if unfit, ok := errors.AsType[*ratelimit.RuleError](err); ok {
		return unfit.Error(), fieldOf(unfit.Argument), status
	}
	_, isWrong := errors.AsType[operate.Wrong](err)
	_, isKey := errors.AsType[*ratelimit.KeyError](err)
	_, isUnknown := errors.AsType[*operate.UnknownRule](err)
	if !isWrong && !isKey && !isUnknown && !errors.Is(err, operate.ErrSecret) {
		status = http.StatusServiceUnavailable
	}
	return err.Error(), "", status
}

// fieldOf returns the field of a form for an argument of a directive, or "".
func fieldOf(argument string) string {
	switch argument {
	case "limit", "factor", "mode", "match":
		return argument
	case "until", "block", "pause":
		return "for"
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
	target, keyed, err := c.target(ctx, o.Request)
	if err != nil {
		return nil, err
	}
	o.target = target
	text, err := what.do(c.prefix, ctx, o)
	if err != nil {
		return nil, err
	}
	d := &done{Text: text, Rule: target.Rule, Key: target.Match, Match: target.Match != "", Undo: c.undoable(ctx, o)}
	if len(target.Keys) > 0 {
		d.Key = target.Keys[0]
	}
	d.AllKeys = d.Key == "" && keyed
	return d, nil
}

// target returns whose settings or counts a form changes, and whether the rules count by key.
func (c *console) target(ctx context.Context, r *http.Request) (t operate.Target, keyed bool, err error) {
	form, k := r.PostForm, keyIn(r)
	t = operate.Target{Rule: form.Get("rule"), Match: strings.TrimSpace(form.Get("match")), Shown: k.Shown}
	if t.Match == "" && k.Text != "" {
		t.Keys = []string{k.Text}
	}
	if form.Get("page") == "rule" && t.Match == "" && slices.Contains([]string{"block", "unblock", "pause", "resume"}, form.Get("do")) {
		return t, false, wrong{"match", "write a network such as 203.0.113.0/24, or a text such as ann*; the page of a key blocks the key alone"}
	}
	if fleet.IsGlob(t.Rule) {
		return t, true, nil
	}
	rules, at := c.prefix.Rules(ctx)
	i := slices.IndexFunc(rules, func(u ratelimit.UsedRule) bool { return operate.ID(u.Rule) == t.Rule })
	switch {
	case i < 0 && at.Err != nil:
		return t, false, at.Err
	case i < 0:
		return t, false, wrong{"rule", "the rule is unknown; choose one of the list"}
	}
	t.Rule, t.Only = fleet.SettingName(rules[i].Name), t.Rule
	return t, rules[i].Key != "", nil
}

// undoable identifies what an order has just changed. It returns "" if that cannot be undone, or is not the last change any more.
func (c *console) undoable(ctx context.Context, o order) string {
	all, _ := c.prefix.Changes(ctx, "")
	if len(all) == 0 || all[0].By != o.actor.By || all[0].Reason != o.actor.Reason || all[0].What != o.PostForm.Get("do") || all[0].Rule != o.target.Rule {
		return ""
	}
	return operate.Undoable(all)
}

func reset(p *operate.Prefix, ctx context.Context, o order) (string, error) {
	n, err := p.Reset(ctx, o.actor, o.target)
	return operate.Count(n, "count") + " forgotten.", err
}

func give(p *operate.Prefix, ctx context.Context, o order) (string, error) {
	n, err := strconv.ParseInt(o.PostForm.Get("permits"), 10, 64)
	if err != nil || n <= 0 {
		return "", wrong{"permits", fmt.Sprintf("write how many permits to give; found %.20q", o.PostForm.Get("permits"))}
	}
	given, err := p.Give(ctx, o.actor, o.target, n)
	if err != nil {
		return "", err
	}
	return "Permits given back: " + given[0].InWords() + ".", nil
}

// everywhere says how soon other processes follow.
func everywhere(ctx context.Context, p *operate.Prefix) string {
	if text := p.Hindrance(ctx); text != "" {
		return ", but " + text + "."
	}
	return ", everywhere within " + operate.Duration(operate.Within) + "."
}

// said puts into words what a change did.
func said(p *operate.Prefix, ctx context.Context, text string, done operate.Done, err error) (string, error) {
	if err != nil {
		return "", err
	}
	text += everywhere(ctx, p)
	for _, note := range done.Notes {
		text += " " + note + "."
	}
	return text, nil
}

func block(p *operate.Prefix, ctx context.Context, o order) (string, error) {
	done, err := p.Block(ctx, o.actor, o.target, o.length)
	return said(p, ctx, "Blocked for "+operate.Span(o.length), done, err)
}

func unblock(p *operate.Prefix, ctx context.Context, o order) (string, error) {
	done, err := p.Unblock(ctx, o.actor, o.target)
	return said(p, ctx, "Not blocked any more", done, err)
}

func pause(p *operate.Prefix, ctx context.Context, o order) (string, error) {
	done, err := p.Pause(ctx, o.actor, o.target, o.length)
	return said(p, ctx, "Paused for "+operate.Span(o.length), done, err)
}

func resume(p *operate.Prefix, ctx context.Context, o order) (string, error) {
	done, err := p.Resume(ctx, o.actor, o.target)
	return said(p, ctx, "Not paused any more", done, err)
}

// set overrides a rule for all keys, or for one. What the form leaves empty stays as an earlier override has it.
func set(p *operate.Prefix, ctx context.Context, o order) (string, error) {
	form, wish := o.PostForm, operate.Wish{For: o.length, Forever: o.length == 0}
	if text := form.Get("limit"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return "", wrong{"limit", fmt.Sprintf("write the limit as a number; found %.20q", text)}
		}
		wish.Limit = &n
	}
	if text := form.Get("factor"); text != "" {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return "", wrong{"factor", fmt.Sprintf("write the factor as a number such as 1.5; found %.20q", text)}
		}
		wish.Factor = n
	}
	for _, mode := range modes() {
		if form.Get("mode") == mode.String() {
			wish.Mode = &mode
		}
	}
	if wish.Limit == nil && wish.Factor == 0 && wish.Mode == nil {
		return "", wrong{"limit", "write a limit, a factor or a mode"}
	}
	done, err := p.Override(ctx, o.actor, o.target, wish)
	return said(p, ctx, "Set", done, err)
}

func clearOverride(p *operate.Prefix, ctx context.Context, o order) (string, error) {
	done, err := p.ClearOverride(ctx, o.actor, o.target)
	return said(p, ctx, "As declared again", done, err)
}

// undo brings back what was in force before the last change.
func (c *console) undo(ctx context.Context, o order) (*done, error) {
	changed, err := c.prefix.Undo(ctx, o.actor, o.PostForm.Get("change"))
	if err != nil {
		return nil, err
	}
	return &done{
		Text: "Undone" + everywhere(ctx, c.prefix), Rule: changed.Rule, Key: changed.Key, Match: changed.Match, AllKeys: changed.Kind == fleet.Override && changed.Key == "",
	}, nil
}

// parseFor parses how long something is in force: a duration of the directives, or "forever" as 0.
func parseFor(text string) (time.Duration, error) {
	if text == "forever" {
		return 0, nil
	}
	d, _, err := period.Parse("end", text)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("write how long, such as 2h or 7d; found %.20q", text)
	}
	return d, nil
}
