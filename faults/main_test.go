package faults

import (
	"flag"
	"os"
	"testing"

	"github.com/redis/go-redis/v9/logging"
)

func TestMain(m *testing.M) {
	logging.Disable() // the client logs each connection that fails
	if addr := os.Getenv(enduringOn); addr != "" {
		endure(addr)
	}
	_ = flag.Set("test.parallel", "8") // most tests wait
	m.Run()
}
