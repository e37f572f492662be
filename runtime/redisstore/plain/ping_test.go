package plain

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// Ping says what is missing for decisions without scripts, and leaves no keys.
func TestPing(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	as := func(user, password string) error {
		client := redis.NewClient(&redis.Options{
			Addr: server.Addr, Username: user, Password: password, MaxRetries: -1, ReadTimeout: 20 * time.Second, DialTimeout: 20 * time.Second,
		})
		defer client.Close()
		return ratelimit.New(New(client, WithTimeout(time.Minute)), ratelimit.WithPrefix("p")).Ping(t.Context())
	}
	requireErr := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if err := as("", ""); err != nil || server.Do("KEYS *") != "" {
		t.Errorf("error %v, and it left %q", err, server.Do("KEYS *"))
	}
	requireErr(as("ann", "x"), `does not know the user "ann"`)
	var commands []string
	for _, try := range tries("") {
		commands = append(commands, try[0].(string))
	}
	all := "+" + strings.Join(commands, " +")
	server.Do("ACL SETUSER all on >x ~p:* %R~p.fleet:* %R~p.seen:* " + all)
	if err := as("all", "x"); err != nil {
		t.Error(err)
	}
	for i, command := range slices.Compact(commands) {
		server.Do(fmt.Sprintf("ACL SETUSER user%d on >x ~p:* %%R~p.fleet:* %%R~p.seen:* %s -%s", i, all, command))
		requireErr(as(fmt.Sprint("user", i), "x"), "may not run "+strings.ToUpper(command)+" ")
	}
	server.Do("REPLICAOF 127.0.0.1 1")
	requireErr(as("", ""), "read-only replica")
	server.Stop()
	requireErr(as("", ""), "cannot be reached")
}

// On a cluster, Ping checks each master.
func TestPingOfACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs(), ReadTimeout: 20 * time.Second, DialTimeout: 20 * time.Second})
	defer client.Close()
	l := ratelimit.New(New(client, WithTimeout(time.Minute)), ratelimit.WithPrefix("p"))
	if err := l.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	cluster[1].Do("ACL SETUSER default -bitfield")
	if err := l.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), cluster[1].Addr+": the user may not run BITFIELD ") {
		t.Errorf("got %v", err)
	}
}

// A client for one server that is connected to a node of a cluster fails with advice, in Ping and in each call whose key is elsewhere, also if
// the server tells that to a command of a transaction.
func TestClientOfAClusterNode(t *testing.T) {
	t.Parallel()
	const advice = "use redis.NewClusterClient"
	client := redis.NewClient(&redis.Options{
		Addr: redistest.StartCluster(t, 3)[0].Addr, ReadTimeout: 20 * time.Second, DialTimeout: 20 * time.Second,
	})
	defer client.Close()
	l := ratelimit.New(New(client, WithTimeout(20*time.Second)), ratelimit.WithLogger(slog.New(slog.DiscardHandler)))
	requireAdvice := func(err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), advice) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want advice", err)
		}
	}
	requireAdvice(l.Ping(t.Context()))
	rule := ratelimit.Rule{Name: "r", Limit: 1, Per: time.Minute, Algorithm: ratelimit.FixedWindow}
	admitted, failed := 0, 0
	for i := range 64 {
		ask := ratelimit.Request{Rule: rule, Key: fmt.Sprint(i)}
		d, err := l.Allow(t.Context(), ask)
		if d.Allowed {
			admitted++
			continue
		}
		failed++
		requireAdvice(err)
		_, err = l.Reset(t.Context(), ask)
		requireAdvice(err)
	}
	if admitted == 0 || failed == 0 {
		t.Errorf("%d calls for the node's own keys were admitted, %d for others failed", admitted, failed)
	}
}
