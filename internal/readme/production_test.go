package readme

import (
	"bufio"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
)

// checkProduction runs the program of docs/production.md on a Redis server. It asks it as customers and operators do, runs the commands of the
// page beside it, which are in the folder bin, stops the server, and ends the program.
func checkProduction(t *testing.T, p page, bin string) {
	server := redistest.Start(t)
	if _, err := run(p.dir, "go", "build", "-o", filepath.Join(bin, p.name), "."); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "REDIS_URL=redis://"+server.Addr, "ADDR=127.0.0.1:0", "ADMIN_ADDR=127.0.0.1:0",
		"RATELIMIT_REDIS=redis://"+server.Addr, "RATELIMIT_PREFIX=shop")
	shop := exec.CommandContext(t.Context(), filepath.Join(bin, p.name))
	shop.Env = env
	public, admin := open(t, shop)

	code := func(status int) http.Header {
		t.Helper()
		return post(t, public+"/codes", "", url.Values{"phone": {"5550100"}}, status)
	}
	order := func(user, product string, status int) http.Header {
		t.Helper()
		return post(t, public+"/orders", user, url.Values{"product": {product}}, status)
	}
	if left := code(http.StatusNoContent).Get("RateLimit"); !strings.Contains(left, `"codes";r=0;`) || !strings.Contains(left, `"codes-day";r=9;`) {
		t.Errorf("RateLimit is %s", left)
	}
	if retry := code(http.StatusTooManyRequests).Get("Retry-After"); retry == "" {
		t.Error("a refusal has no Retry-After")
	}
	order("", "lamp", http.StatusUnauthorized)
	order("ann", "lamp", http.StatusNoContent)
	order("ann", "moon", http.StatusNotFound)
	for path, want := range map[string]string{"/readyz": "", "/metrics": `ratelimit_decisions_total{outcome="refused",rule="codes"`, "/limits/": "<title>"} {
		if got := body(t, admin+path); !strings.Contains(got, want) {
			t.Errorf("%s: got %s", path, got)
		}
	}

	await(t, p.dir, env, "ratelimitctl rules | grep -q codes-client")
	for _, b := range p.blocks {
		if b.language == "sh" {
			for line := range strings.Lines(b.text) {
				if strings.HasPrefix(line, "ratelimitctl ") || strings.HasPrefix(line, "go tool ") {
					if out, err := shell(p.dir, env, line); err != nil {
						t.Errorf("%s%v: %s", line, err, out)
					}
				}
			}
		}
	}

	server.Stop()
	code(http.StatusNoContent)                          // the limiter's policy
	order("ann", "lamp", http.StatusServiceUnavailable) // that of the rule
	body(t, admin+"/readyz")
	if err := shop.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := shop.Wait(); err != nil {
		t.Error(err)
	}
}

var opened = regexp.MustCompile(`the shop is open public=(\S+) admin=(\S+)`)

// open starts the shop, and returns the URLs of its two addresses, which it logs.
func open(t *testing.T, shop *exec.Cmd) (public, admin string) {
	t.Helper()
	stderr, err := shop.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := shop.Start(); err != nil {
		t.Fatal(err)
	}
	log := bufio.NewReader(stderr)
	for {
		line, err := log.ReadString('\n')
		if m := opened.FindStringSubmatch(line); m != nil {
			go func() { _, _ = io.Copy(io.Discard, log) }()
			return "http://" + m[1], "http://" + m[2]
		}
		if err != nil {
			t.Fatalf("the shop did not open: %s, %v", line, err)
		}
	}
}

// post sends a form as a user, and returns the header of the answer.
func post(t *testing.T, to, user string, form url.Values, status int) http.Header {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if user != "" {
		r.SetBasicAuth(user, "")
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != status {
		text, _ := io.ReadAll(answer.Body)
		t.Errorf("%s %v: got %d %s; expected %d", to, form, answer.StatusCode, text, status)
	}
	return answer.Header
}

// body returns the body of a page, which must be answered 200.
func body(t *testing.T, from string) string {
	t.Helper()
	answer, err := http.Get(from)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("%s: got %d, %v", from, answer.StatusCode, err)
	}
	return string(text)
}

// await runs a command until it succeeds.
func await(t *testing.T, dir string, env []string, command string) {
	t.Helper()
	for range 150 {
		if _, err := shell(dir, env, command); err == nil {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	t.Fatalf("after 30 s this still fails: %s", command)
}

func shell(dir string, env []string, command string) (string, error) {
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.CombinedOutput()
	return string(out), err
}
