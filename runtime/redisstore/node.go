package redisstore

import (
	"cmp"
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/breaker"
)

// node is a server that calls are sent to: a single server, a master of a cluster, or a shard of a ring. If the client hides that its server
// is a cluster, each range of slots is a node, so that the loss of one master does not affect calls for keys of other masters.
type node struct {
	queue
	inTime    // the hook of client; zero if client is not that of one server
	store     *store
	client    redis.UniversalClient
	breaker   *breaker.Breaker
	functions atomic.Bool  // runs are sent as calls of the function, not of the script
	loading   atomic.Bool  // the function is being loaded
	offset    atomic.Int64 // how far the server's clock was last seen ahead of ours, in microseconds
}

// Recovery: while a server cannot be reached, nobody should wait for it, and when it is back, calls should notice at once. So after three
// failures one call in 20 ms tries to reach the server, and the others fail without trying. Such a try knocks first: it connects apart from
// the client's pool, which after many failures connects only once a second. A decision is sent only if that works. The commands of the
// background knock, too, so that the pool does not fail.
//
// For example, a server stops at 0 ms, and the calls on their way fail. Nobody knows whether they were charged; caller A is the third of them.
// Caller B comes at 5 ms and fails at once, certainly without a charge. At 20 ms caller C knocks. If the server answers, C's call is sent, and
// so are all calls after it. If not, C fails without a charge as well, and the next call knocks at 40 ms.

// node returns the server of a subject.
func (s *store) node(ctx context.Context, subject string) (*node, error) {
	client, err := s.servers.Of(ctx, subject)
	if err != nil {
		return nil, err
	}
	var slots any
	if client == s.servers.Client && s.servers.Split.Load() {
		slots = slotRange(subject)
	}
	id := cmp.Or[any](slots, client)
	if n, ok := s.nodes.Load(id); ok {
		return n.(*node), nil
	}
	return s.addNode(id, client), nil
}

// addNode adds a node, or returns one that was added meanwhile. There must be only one, because a node adds a hook to its client.
func (s *store) addNode(id any, client redis.UniversalClient) *node {
	s.adding.Lock()
	defer s.adding.Unlock()
	if n, ok := s.nodes.Load(id); ok {
		return n.(*node)
	}
	n := &node{store: s, client: client, breaker: s.servers.Breaker(id, client)}
	n.functions.Store(s.functions)
	if whole, ok := s.nodes.Load(client); ok { // n is a range of slots of this node
		n.inTime = whole.(*node).inTime
	} else if c, ok := client.(*redis.Client); ok {
		n.inTime = s.newCopy(c)
	}
	if id == any(client) {
		go s.servers.Guard(func() {
			if n.breaker.Knock(context.Background()) == nil {
				s.lookAtMemory(context.Background(), n.quick())
			}
		})
	}
	s.nodes.Store(id, n)
	return n
}

// quick returns the client with the store's timeout, or the original client if there is none.
func (n *node) quick() redis.UniversalClient {
	if n.own != nil {
		return n.own
	}
	return n.client
}

// now estimates the server's time.
func (n *node) now() int64 { return time.Now().UnixMicro() + n.offset.Load() }

// noteTime notes the server's time.
func (n *node) noteTime(now int64) { n.offset.Store(now - time.Now().UnixMicro()) }

// minReload is the shortest time between two requests for a cluster's layout while one of its servers cannot be reached. The client itself asks
// only once a minute.
const minReload = 250 * time.Millisecond

// noteLoss notes that the server of a key could not be reached. It makes the client ask for the cluster's layout, because another server may have
// taken over.
func (n *node) noteLoss(key string) {
	s := n.store
	last, now := s.reloaded.Load(), time.Now().UnixNano()
	if !s.servers.Split.Load() || now-last <= int64(minReload) || !s.reloaded.CompareAndSwap(last, now) {
		return
	}
	switch client := s.servers.Client.(type) {
	case *redis.ClusterClient:
		client.ReloadState(context.Background())
	case *redis.Ring:
	default:
		go s.servers.Guard(func() { s.misdirect(key) })
	}
}

// misdirect makes a client that hides its cluster ask for the layout. It sends a command for the key to the server of another key. That server
// replies that the key is elsewhere, and then the client asks.
func (s *store) misdirect(key string) {
	ctx, cancel := context.WithTimeout(context.Background(), s.servers.Timeout)
	defer cancel()
	command := redis.NewCmd(ctx, "getrange", key, rand.IntN(1<<20), 0)
	command.SetFirstKeyPos(2)
	_ = s.servers.Client.Process(ctx, command)
}

// slotsOfARange is the number of slots in a range. Consecutive slots are nearly always on one master.
const slotsOfARange = 256

// slotRange returns the range of a hash tag's slot. The slot is the CRC-16/XMODEM of the tag, modulo 16,384.
func slotRange(tag string) int {
	var crc uint16
	for i := range len(tag) {
		crc ^= uint16(tag[i]) << 8
		for range 8 {
			top := crc >> 15
			crc = crc<<1 ^ top*0x1021
		}
	}
	return int(crc%16384) / slotsOfARange
}
