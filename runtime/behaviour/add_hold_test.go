package behaviour_test

import (
	"context"
	"io"
	"iter"
	"slices"
	"strings"
	"testing"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// chatter answers by results that hold the permit of a call that runs until they have ended.
type chatter interface {
	//ratelimit:rule name=chats key="{user}" algorithm=concurrency limit=2 per=1h hold=words
	//ratelimit:rule name=said key="{user}" limit=10 per=3000h algorithm=fixed-window cost=2
	say(ctx context.Context, user string) (words iter.Seq[string], err error)

	//ratelimit:rule name=chats key="{user}" algorithm=concurrency limit=2 per=1h hold=words
	//ratelimit:rule name=said key="{user}" limit=10 per=3000h algorithm=fixed-window cost=2
	stream(ctx context.Context, user string) (words receiver, err error)
}

type receiver interface{ Recv() (string, error) }

// words are the words of an answer.
type words []string

func (w words) say(context.Context, string) (iter.Seq[string], error) { return slices.Values(w), nil }

func (w words) stream(context.Context, string) (receiver, error) { return &w, nil }

func (w *words) Recv() (word string, err error) {
	if len(*w) == 0 {
		return "", io.EOF
	}
	word, *w = (*w)[0], (*w)[1:]
	return word, nil
}

// received are the words of a stream, to its end.
func received(from receiver) iter.Seq[string] {
	return func(yield func(string) bool) {
		for word, err := from.Recv(); err == nil; word, err = from.Recv() {
			yield(word)
		}
	}
}

// firstOf are the first n words: the loop over all is left then.
func firstOf(all iter.Seq[string], n int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for word := range all {
			if n--; n < 0 {
				return
			}
			yield(word)
		}
	}
}

func (s *subject) requireRunning(t *testing.T, rule ratelimit.Rule, key string, want int64) {
	t.Helper()
	if running := rule.Limit - s.peek(t, ratelimit.Request{Rule: rule, Key: key}).Quotas[0].Remaining; running != want {
		t.Fatalf("%s: %d calls run, want %d", rule.Name, running, want)
	}
}

// A call whose result holds a permit grows while the result is read, and after the method has returned. It has ended when the iterator or the
// stream has.
func TestAddsWhileAResultIsRead(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		limited, rules := newLimitedChatter(words(strings.Fields("the quick brown fox")), s.limiter), chatterRules()
		for user, begin := range map[string]func(ctx context.Context, user string) (iter.Seq[string], error){
			"iterator": limited.say,
			"iterator that is left": func(ctx context.Context, user string) (iter.Seq[string], error) {
				all, err := limited.say(ctx, user)
				return firstOf(all, 3), err
			},
			"stream": func(ctx context.Context, user string) (iter.Seq[string], error) {
				all, err := limited.stream(ctx, user)
				return received(all), err
			},
		} {
			ctx, charge := ratelimit.WithCharge(t.Context())
			answer, err := begin(ctx, user)
			if err != nil {
				t.Fatal(err)
			}
			taken := int64(2)
			for range answer {
				s.requireRunning(t, rules[0], user, 1)
				if taken < 8 {
					requireAdded(t, charge, 3)
					taken += 3
				} else {
					refuseMore(t, charge, 3, "said")
				}
				s.requireTaken(t, rules[1], user, taken)
			}
			s.requireRunning(t, rules[0], user, 0)
			if err := charge.Add(ctx, 1); !isRuleError(err) {
				t.Errorf("%s: an Add after the end: got error %v", user, err)
			}
			s.requireTaken(t, rules[1], user, 8)
			if err := charge.Settle(ctx, 4); err != nil {
				t.Fatal(err)
			}
			s.requireTaken(t, rules[1], user, 4)
		}
	})
}
