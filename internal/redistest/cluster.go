package redistest

import (
	"fmt"
	"strings"
	"testing"
)

const slots = 16384

// Cluster is a group of servers of the same kind: the masters of a cluster, each with the same share of the slots, their replicas, or
// sentinels.
type Cluster []*Server

// StartCluster starts n servers and returns when each of them sees the whole cluster.
func StartCluster(t testing.TB, n int, args ...string) Cluster {
	t.Helper()
	var c Cluster
	for i := range n {
		s := startNode(t, args)
		s.Do(fmt.Sprintf("CLUSTER ADDSLOTSRANGE %d %d", i*slots/n, (i+1)*slots/n-1))
		c = append(c, s)
	}
	for _, s := range c[1:] {
		s.meet(c[0])
	}
	for _, s := range c {
		s.waitJoined(n)
	}
	return c
}

// Addrs returns the addresses of all servers.
func (c Cluster) Addrs() []string {
	addrs := make([]string, len(c))
	for i, s := range c {
		addrs[i] = s.Addr
	}
	return addrs
}

func startNode(t testing.TB, args []string) *Server {
	t.Helper()
	return Start(t, append([]string{"--cluster-enabled", "yes", "--cluster-node-timeout", "5000"}, args...)...)
}

// meet makes the server join the cluster of another one.
func (s *Server) meet(other *Server) {
	s.Do("CLUSTER MEET " + strings.Replace(other.Addr, ":", " ", 1))
}

// waitJoined waits until the server knows n nodes and the owners of all slots.
func (s *Server) waitJoined(n int) {
	s.t.Helper()
	s.WaitFor("CLUSTER INFO", "cluster_state:ok", fmt.Sprintf("cluster_slots_ok:%d\r\n", slots), fmt.Sprintf("cluster_known_nodes:%d\r\n", n))
}
