package operate_test

import (
	"slices"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
)

// Settings can be imported into a store in this process, too.
func TestImportInMemory(t *testing.T) {
	_, p := inMemory(t, login)
	block := &fleet.Setting{Kind: fleet.Block, Rule: "login", Key: "ann", Values: fleet.Values{Until: time.Now().Add(time.Hour), At: time.Now()}}
	i, err := p.Import(t.Context(), kim, p.Name(), []*fleet.Setting{block}, false)
	held, _ := p.InForce(t.Context())
	if err != nil || i.Read != 1 || i.After != 1 || !slices.ContainsFunc(held, func(s *fleet.Setting) bool { return s.Key == "ann" }) {
		t.Errorf("%+v, %v; in force is %v", i, err, held)
	}
}
