package servers

import (
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Nobody sends a command or its clone twice, or with another client than the one it is for.
func TestCloneOfACmd(t *testing.T) {
	by := redis.NewClient(&redis.Options{})
	c := Cmd{redis.NewCmd(t.Context(), "get", "k"), by}
	for _, cmd := range []redis.Cmder{c, c.Clone(), c.Clone().Clone()} {
		if own, ok := cmd.(Cmd); !ok || !cmd.NoRetry() || own.By != by || !slices.Equal(cmd.Args(), c.Args()) {
			t.Errorf("got %+v", cmd)
		}
	}
}
