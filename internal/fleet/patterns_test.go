package fleet_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
)

// byPattern returns n blocks of networks.
func byPattern(n int) (all []*fleet.Setting) {
	for i := range n {
		key := fmt.Sprintf("10.%d.%d.0/24", i/256, i%256)
		all = append(all, &fleet.Setting{Kind: fleet.Block, Rule: "*", Key: key, Match: true, Values: fleet.Values{Until: time.Now().Add(time.Hour)}})
	}
	return all
}

// isBlocked reports whether an address is blocked under a rule by pattern.
func isBlocked(f *fleet.Fleet, address string) bool {
	m := f.InForce().ByPattern("login").Match(address, address, false)[1]
	return m != nil && m.Block != nil
}

// At most 1,000 settings by pattern hold. More are refused when they are written, also by several processes at the same time; an import counts without
// those that the store has lost.
func TestBoundOfPatterns(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c, _ := client(t, server.Addr, 0)
	f, other := of(c, "p"), of(c, "p")
	all := byPattern(fleet.MaxPatterns + 1)
	set(t, f, "kim", all[:fleet.MaxPatterns-1]...)
	if err := other.Follow(t.Context()); err != nil {
		t.Fatal(err)
	}
	set(t, f, "kim", all[fleet.MaxPatterns-1])
	set(t, other, "kim", all[0], override("r", "ann", 1)) // which take no more room
	for _, f := range []*fleet.Fleet{f, other} {
		_, err := f.Change(t.Context(), fleet.Edit{Actor: fleet.Actor{By: "kim"}, What: "block", Settings: all[fleet.MaxPatterns:]})
		if !isUnfit(err) || !strings.Contains(err.Error(), "found 1001 settings by pattern; expected at most 1000") {
			t.Errorf("got %v", err)
		}
	}
	end := *all[3]
	end.Cleared = true
	set(t, f, "kim", &end)
	set(t, other, "kim", all[fleet.MaxPatterns])
	server.Do("FLUSHALL")
	f.Beat()
	for _, s := range all {
		s.At = time.Now()
	}
	if err := f.Import(t.Context(), fleet.Actor{By: "kim"}, all[:fleet.MaxPatterns]); err != nil {
		t.Errorf("an import after a loss: %v", err)
	}
}

// If others write more than 1,000 settings by pattern, every process follows the same first ones, and says so until it follows all.
func TestTooManyPatterns(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c, _ := client(t, server.Addr, 0)
	f := of(c, "p")
	all := byPattern(fleet.MaxPatterns + 2)
	set(t, f, "kim", all[:fleet.MaxPatterns]...)
	for i, s := range all[fleet.MaxPatterns:] {
		version := fleet.MaxPatterns + i + 1
		c.HSet(t.Context(), "p.fleet:{p}:settings", s.Name(), fmt.Sprintf(`{"until":"%s"}`, s.Until.UTC().Format(time.RFC3339)))
		c.ZAdd(t.Context(), "p.fleet:{p}:versions", redis.Z{Score: float64(version), Member: s.Name()})
		c.Set(t.Context(), "p.fleet:{p}:version", version, 0)
	}
	fresh := of(c, "p")
	check := func(what string, complaints int, blocked ...bool) {
		t.Helper()
		for _, f := range []*fleet.Fleet{f, fresh} {
			if err := f.Follow(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := len(f.Status().Malformed); n != complaints {
				t.Errorf("%s: the status has %d complaints, want %d: %v", what, n, complaints, f.Status().Malformed)
			}
			for i, want := range blocked {
				address := strings.TrimSuffix(all[fleet.MaxPatterns-1+i].Key, "0/24") + "9"
				if isBlocked(f, address) != want {
					t.Errorf("%s: %s is blocked: %t", what, address, !want)
				}
			}
		}
	}
	check("at first", 1, true, false, false)
	end := func(s fleet.Setting) {
		s.Cleared = true
		set(t, f, "kim", &s)
	}
	end(*all[5])
	check("after one was cleared", 1, true, true, false)
	end(*all[fleet.MaxPatterns+1])
	check("after that was cleared for which there was no room", 0, true, true, false)
}

// A name that is no setting by pattern is malformed, and applies to nothing. So are the names of settings by pattern to programs that know none.
func TestMalformedPatterns(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c, _ := client(t, server.Addr, 0)
	f := of(c, "p")
	for i, name := range []string{
		"block:login:{10.0.0.0/8}*", "block:*:{ann}", "block*:login:{ann}", "block*:login", "block*:l*n:{ann}", "block*:*", "block*:login:{10.0.0.1/8}*", "block*:login:{ann}**",
		"block*:login:{*}*", "block*:login:{a{b*}*", "block*:login:{10.0.0.0/8}", "block**:*:{ann}", "block*:**:{ann}", "block*:login:{::ffff:10.0.0.0/104}*",
	} {
		c.HSet(t.Context(), "p.fleet:{p}:settings", name, `{"until":"2100-01-01T00:00:00Z"}`)
		c.ZAdd(t.Context(), "p.fleet:{p}:versions", redis.Z{Score: float64(i + 1), Member: name})
		c.Set(t.Context(), "p.fleet:{p}:version", i+1, 0)
		if err := f.Follow(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(f.Status().Malformed) != i+1 || f.InForce() != nil {
			t.Fatalf("%s is not malformed: %v", name, f.Status().Malformed)
		}
	}
}

// Settings by pattern come back after a loss as others do, from what processes know.
func TestPatternsAreRecovered(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	all := newProcesses(t, server, 2)
	c, _ := client(t, server.Addr, 0)
	set(t, of(c, "p"), "kim", byPattern(2)...)
	all.beat(1)
	server.Do("FLUSHALL")
	all.beat(2)
	if !isBlocked(all[0], "10.0.1.9") {
		t.Error("a loss ends a block")
	}
	tool := of(c, "p")
	r := all.recovered(t, tool)
	if len(r.Settings) != 2 || !r.Settings[0].Match {
		t.Fatalf("recovered are %+v", r.Settings)
	}
	if err := tool.Recover(t.Context(), fleet.Actor{By: "kim"}, r.Settings); err != nil {
		t.Fatal(err)
	}
	all.beat(1)
	for _, f := range append(all, tool) {
		if !isBlocked(f, "10.0.0.9") || !isBlocked(f, "10.0.1.9") || f.Status().Lost > 0 {
			t.Errorf("a block did not come back: %+v", f.Status())
		}
	}
}
