package redistest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	startTries = 20          // how many ports to try
	patience   = time.Minute // how long a server may take to answer, as the machine may be busy
)

// Server is one running server process.
type Server struct {
	Addr string // host:port

	t       testing.TB
	binary  string
	args    []string
	dir     string
	process *process // nil while stopped
}

// process is one run of the binary. done is closed when it has ended.
type process struct {
	cmd    *exec.Cmd
	output bytes.Buffer // may be read only after done
	done   chan struct{}
}

// Start starts a server with extra arguments such as "--maxmemory", "1mb". The first may be a configuration file. Start returns when the
// server answers. The server ends when t and its subtests are over.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	s := &Server{t: t, binary: findBinary(t), args: args, dir: t.TempDir()}
	t.Cleanup(s.Stop)
	var err error
	for range startTries {
		// Another process may take the port before the server binds it. Then the server ends, and Start tries the next port.
		s.Addr = net.JoinHostPort("127.0.0.1", freePort(t))
		if err = s.run(); err == nil {
			return s
		}
	}
	t.Fatalf("no server after %d tries: %v", startTries, err)
	return nil
}

// Stop kills the server, like a crash. It does nothing if the server is stopped.
func (s *Server) Stop() {
	if s.process == nil {
		return
	}
	_ = s.process.cmd.Process.Kill() // also ends a paused process; fails only if the process has ended
	<-s.process.done
	s.process = nil
}

// Restart starts the server again on its old port, without data.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	if err := s.run(); err != nil {
		s.t.Fatalf("restart: %v", err)
	}
}

// Pause freezes the process: connections stay open, but the server does not reply until Resume.
func (s *Server) Pause() { s.signal(stop) }

// Resume ends a Pause.
func (s *Server) Resume() { s.signal(resume) }

func (s *Server) signal(sig syscall.Signal) {
	s.t.Helper()
	if s.process == nil {
		s.t.Fatalf("%v to a server that is stopped", sig)
	}
	if err := s.process.cmd.Process.Signal(sig); err != nil {
		s.t.Fatalf("%v: %v", sig, err)
	}
}

func (s *Server) run() error {
	_, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		return err
	}
	p := &process{done: make(chan struct{})}
	var file []string
	args := s.args
	if len(args) > 0 && !strings.HasPrefix(args[0], "--") {
		file, args = args[:1], args[1:]
	}
	p.cmd = exec.Command(s.binary, slices.Concat(file, []string{
		"--bind", "127.0.0.1", "--port", port, "--dir", s.dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no", "--loglevel", "warning", "--repl-diskless-sync-delay", "0",
	}, args)...)
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	p.cmd.SysProcAttr = dieWithParent()
	if err := p.cmd.Start(); err != nil {
		return err
	}
	go func() {
		_ = p.cmd.Wait() // the output says how it ended
		close(p.done)
	}()
	s.process = p
	if err := s.waitReady(); err != nil {
		s.Stop()
		return fmt.Errorf("%w\n%s", err, p.output.String())
	}
	return nil
}

// waitReady waits until the server answers on the port, and checks that it is the process that was started.
func (s *Server) waitReady() error {
	own := fmt.Sprintf("process_id:%d\r\n", s.process.cmd.Process.Pid)
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		select {
		case <-s.process.done:
			return errors.New("the server ended while starting")
		default:
		}
		if info, err := ask(s.Addr, "INFO server"); err == nil && strings.Contains(info, own) {
			return nil
		}
	}
	return fmt.Errorf("the server did not answer within %v", patience)
}

func findBinary(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("redis-server or valkey-server not found: run \"make test\", which installs one, " +
		"or install the package redis-server, redis or valkey of your system")
	return ""
}

// freePort returns a free port of 12000 to 21999. A cluster's bus has the port that is 10000 higher. Systems give connections ports from 32768 on,
// so no connection takes the port of a server that is stopped.
func freePort(t testing.TB) string {
	t.Helper()
	for range 1000 {
		port := strconv.Itoa(12_000 + rand.IntN(10_000))
		if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port)); err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return ""
}
