package generator_test

import (
	"strings"
	"testing"

	"github.com/ratelimit-go/ratelimit/generator"
)

// TestSettle shows what is generated where the cost of a call is known from its results.
func TestSettle(t *testing.T) {
	dir := place(t, `-- x.go --
package x

import "context"

type Usage struct{ Total int }

type Response struct{ Usage *Usage }

type X interface {
	//ratelimit:rule limit=1000 per=1m cost="len(prompt)" settle="resp.Usage.Total"
	//ratelimit:rule limit=10 per=1s
	Complete(ctx context.Context, prompt string) (resp *Response, err error)

	//ratelimit:rule limit=1000 per=1m settle="result0" refund=error
	Read(ctx context.Context, p []byte) (int, error)
}
`)
	result, err := generator.Generate(t.Context(), generator.Config{Dir: dir, Patterns: []string{"."}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`
	resp, err = x.next.Complete(ctx, prompt)
	if err == nil {
		if resp == nil {
			taken.SettleFailed(ctx, xCompleteRules.NilKey(0, "resp"))
			return resp, err
		}
		if resp.Usage == nil {
			taken.SettleFailed(ctx, xCompleteRules.NilKey(0, "resp.Usage"))
			return resp, err
		}
		taken.Settle(ctx, int64(resp.Usage.Total), wrap.Keep)
	}
	return resp, err
`, `
	ok := false
	defer taken.RefundUnless(ctx, &ok)
	result, err := x.next.Read(ctx, p)
	ok = err == nil
	if err == nil {
		taken.Settle(ctx, int64(result))
	}
	return result, err
`} {
		if src := string(result.Files[0].Source); !strings.Contains(src, want) {
			t.Errorf("missing%s\nin\n%s", want, src)
		}
	}
}
