package redistest_test

import (
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
)

func TestStart(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--maxmemory", "123456789")
	if got := s.Do("PING"); got != "PONG" {
		t.Errorf("PING: got %q", got)
	}
	if got := s.Do("CONFIG GET maxmemory"); got != "maxmemory\n123456789" {
		t.Errorf("CONFIG GET maxmemory: got %q", got)
	}
	if got := s.Do("GET missing"); got != "" {
		t.Errorf("GET missing: got %q", got)
	}
}

func TestServersAreApart(t *testing.T) {
	t.Parallel()
	a, b := redistest.Start(t), redistest.Start(t)
	a.Do("SET key a")
	if got := b.Do("EXISTS key"); got != "0" {
		t.Errorf("EXISTS on the other server: got %s", got)
	}
}

func TestRestartForgets(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do("SET key value")
	s.Stop()
	if conn, err := net.Dial("tcp", s.Addr); err == nil {
		conn.Close()
		t.Error("a stopped server accepts connections")
	}
	s.Stop()
	s.Restart()
	if got := s.Do("EXISTS key"); got != "0" {
		t.Errorf("EXISTS after a restart: got %s", got)
	}
}

func TestPauseHoldsAnswersBack(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Pause()
	answered := make(chan string, 1)
	go func() { answered <- s.Do("PING") }()
	select {
	case got := <-answered:
		t.Errorf("a paused server answered %q", got)
	case <-time.After(50 * time.Millisecond):
		s.Resume()
		<-answered
	}
}

func TestPausedServerStops(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Pause()
	s.Stop()
}

func TestStartCluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3)
	if len(c.Addrs()) != 3 {
		t.Fatalf("addresses: %q", c.Addrs())
	}
	for _, s := range c {
		if info := s.Do("CLUSTER INFO"); !strings.Contains(info, "cluster_slots_ok:16384") {
			t.Errorf("%s: not all slots are served:\n%s", s.Addr, info)
		}
	}
}

func TestReplicate(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3)
	replicas := c.Replicate(t)
	for _, s := range slices.Concat(c, replicas) {
		s.Do("CONFIG SET cluster-node-timeout 500")
	}
	c[0].Stop()
	replicas[0].WaitFor("ROLE", "master")
	replicas[1].WaitFor("CLUSTER INFO", "cluster_state:ok")
}

func TestStartSentinels(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	replica := s.StartReplica(t)
	for _, sentinel := range s.StartSentinels(t, "limits", 3, 10_000, 1) {
		sentinel.Do("SENTINEL SET limits down-after-milliseconds 300")
	}
	s.Stop()
	replica.WaitFor("ROLE", "master")
}

func TestWaitForAsksAgainWhenItsConnectionIsClosed(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	var other sync.WaitGroup
	other.Go(func() {
		s.WaitFor("INFO clients", "blocked_clients:1")
		s.Do("CLIENT KILL TYPE normal")
		s.WaitFor("INFO clients", "blocked_clients:1")
		s.Do("RPUSH list item")
	})
	s.WaitFor("BLPOP list 0", "item")
	other.Wait()
}
