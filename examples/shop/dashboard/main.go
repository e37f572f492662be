// Dashboard draws contrib/promlimit/grafana.json from a real run: it starts Redis, the shop and Prometheus, sends a load to the shop for
// a minute and a half, sends the queries of the panels to Prometheus, and draws the answers.
//
//	go run ./dashboard -out ../../contrib/promlimit/dashboard.svg    (in examples/shop; make dashboard does it)
//
// It needs prometheus and redis-server on PATH.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"time"
)

func main() {
	panels := flag.String("panels", "../../contrib/promlimit/grafana.json", "the `file` with the panels")
	out := flag.String("out", "dashboard.svg", "the `file` to draw")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *panels, *out); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, panels, out string) error {
	for _, program := range []string{"prometheus", "redis-server"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%w; install the package of that name, or put the program on PATH", err)
		}
	}
	board, err := readBoard(panels)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "dashboard")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithCancel(ctx)
	s := &stage{dir: dir, redis: freeAddr(), shop: freeAddr(), prometheus: freeAddr()}
	defer s.end()
	defer cancel()
	if err := s.start(ctx); err != nil {
		return err
	}
	began := time.Now()
	if err := s.play(ctx); err != nil {
		return err
	}
	answers, err := board.ask(ctx, "http://"+s.prometheus, began, time.Now())
	if err != nil {
		return err
	}
	return os.WriteFile(out, board.draw(answers), 0o666)
}

// stage holds the programs of the run.
type stage struct {
	dir                     string
	redis, shop, prometheus string // addresses
	programs                []*exec.Cmd
}

const config = `
global: {scrape_interval: 1s}
scrape_configs:
  - job_name: shop
    static_configs: [{targets: [%q]}]
`

// start starts the three programs, and waits until they answer.
func (s *stage) start(ctx context.Context) error {
	file, shop := filepath.Join(s.dir, "prometheus.yaml"), filepath.Join(s.dir, "shop")
	if err := os.WriteFile(file, fmt.Appendf(nil, config, s.shop), 0o666); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", shop, ".").CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	_, port, err := net.SplitHostPort(s.redis)
	if err != nil {
		return err
	}
	for _, c := range []struct {
		name, ready string
		args        []string
	}{
		{"redis-server", "", []string{"--bind", "127.0.0.1", "--port", port, "--save", "", "--dir", s.dir}},
		{shop, "http://" + s.shop + "/readyz", []string{"-http", s.shop, "-grpc", "127.0.0.1:0"}},
		{"prometheus", "http://" + s.prometheus + "/-/ready", []string{
			"--config.file=" + file, "--storage.tsdb.path=" + filepath.Join(s.dir, "data"), "--web.listen-address=" + s.prometheus, "--log.level=error",
		}},
	} {
		if err := s.program(ctx, c.name, c.args); err != nil {
			return err
		}
		if err := s.await(ctx, c.ready); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

func (s *stage) program(ctx context.Context, name string, args []string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "REDIS_URL=redis://"+s.redis)
	cmd.Stderr = os.Stderr
	s.programs = append(s.programs, cmd)
	return cmd.Start()
}

// await waits until a URL answers, or Redis if there is none.
func (s *stage) await(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		if url == "" {
			if conn, err := net.Dial("tcp", s.redis); err == nil {
				return conn.Close()
			}
			continue
		}
		if reply, err := http.Get(url); err == nil {
			reply.Body.Close()
			if reply.StatusCode == http.StatusOK {
				return nil
			}
		}
	}
	return errors.New("it did not answer")
}

// pause stops Redis for a while, like an outage.
func (s *stage) pause(d time.Duration) error {
	conn, err := net.Dial("tcp", s.redis)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "CLIENT PAUSE %d ALL\r\n", d.Milliseconds()); err != nil {
		return err
	}
	time.Sleep(d)
	return nil
}

// end waits for the programs, which end with the context.
func (s *stage) end() {
	for _, program := range s.programs {
		_ = program.Wait() // it was killed
	}
}

// freeAddr returns an address on which no program listens at the moment.
func freeAddr() string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "127.0.0.1:0"
	}
	defer listener.Close()
	return listener.Addr().String()
}
