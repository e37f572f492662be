package redistest

import (
	"fmt"
	"net"
	"strconv"
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
		s.Do("CLUSTER MEET " + c[0].busAddr())
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

// startNode also finds a free port for the cluster bus. The default, the port of the server plus 10000, may be taken or out of range.
func startNode(t testing.TB, args []string) *Server {
	t.Helper()
	return Start(t, append([]string{
		"--cluster-enabled", "yes", "--cluster-node-timeout", "5000", "--cluster-port", strconv.Itoa(freePort(t)),
	}, args...)...)
}

// busAddr returns the address for CLUSTER MEET: host, port and bus port.
func (s *Server) busAddr() string {
	host, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		s.t.Fatal(err)
	}
	bus := s.Do("CONFIG GET cluster-port")
	return fmt.Sprintf("%s %s %s", host, port, strings.TrimPrefix(bus, "cluster-port\n"))
}

// waitJoined waits until the server knows n nodes and the owners of all slots.
func (s *Server) waitJoined(n int) {
	s.t.Helper()
	s.WaitFor("CLUSTER INFO", "cluster_state:ok", fmt.Sprintf("cluster_slots_ok:%d\r\n", slots), fmt.Sprintf("cluster_known_nodes:%d\r\n", n))
}
