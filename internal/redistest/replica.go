package redistest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Replicate starts a replica of each server of the cluster. It returns them, in the order of their masters, when all servers see all
// replicas and each replica has the data of its master.
func (c Cluster) Replicate(t testing.TB, args ...string) Cluster {
	t.Helper()
	var replicas Cluster
	for range c {
		r := startNode(t, args)
		r.meet(c[0])
		replicas = append(replicas, r)
	}
	for i, r := range replicas {
		r.waitJoined(2 * len(c))
		r.Do("CLUSTER REPLICATE " + c[i].Do("CLUSTER MYID"))
		r.WaitFor("INFO replication", "master_link_status:up")
	}
	for i, m := range c {
		m.waitJoined(2 * len(c))
		m.WaitFor("CLUSTER NODES", replicas[i].Do("CLUSTER MYID")+" "+replicas[i].Addr, "slave "+m.Do("CLUSTER MYID"))
	}
	return replicas
}

// StartReplica starts a replica of a server that belongs to no cluster, and returns when it has the data of the server.
func (s *Server) StartReplica(t testing.TB, args ...string) *Server {
	t.Helper()
	host, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	r := Start(t, append([]string{"--replicaof", host + " " + port}, args...)...)
	r.WaitFor("INFO replication", "master_link_status:up")
	return r
}

// StartSentinels starts n sentinels that watch a server with replicas. It returns them when all know each other and the replicas. They
// promote a replica after most of them have not reached the server for a time in milliseconds.
func (s *Server) StartSentinels(t testing.TB, name string, n, missed, replicas int) Cluster {
	t.Helper()
	host, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	var sentinels Cluster
	for range n {
		file := filepath.Join(t.TempDir(), "sentinel.conf")
		text := fmt.Sprintf("sentinel monitor %[1]s %[2]s %[3]s %[4]d\nsentinel down-after-milliseconds %[1]s %[5]d\n"+
			"sentinel failover-timeout %[1]s 5000\n", name, host, port, n/2+1, missed)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		sentinels = append(sentinels, Start(t, file, "--sentinel"))
	}
	for _, sentinel := range sentinels {
		sentinel.WaitFor("INFO sentinel", fmt.Sprintf("status=ok,address=%s,slaves=%d,sentinels=%d", s.Addr, replicas, n))
	}
	return sentinels
}

// WaitFor waits until the reply to a command contains all words. It asks again if the server closes the connection, as a server does
// for all clients when a sentinel promotes it.
func (s *Server) WaitFor(command string, words ...string) {
	s.t.Helper()
	reply, err := "", error(nil)
	missing := func(word string) bool { return !strings.Contains(reply, word) }
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		reply, err = ask(s.Addr, command)
		if err == nil && !slices.ContainsFunc(words, missing) {
			return
		}
	}
	s.t.Fatalf("%s did not answer %s with %q within %v:\n%s (error: %v)", s.Addr, command, words, patience, reply, err)
}
