package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// Under tenth tasks run in the test. Under minute nothing need run, and each place is exactly a minute after the one before.
var (
	tenth  = ratelimit.Rule{Name: "tenth", Algorithm: ratelimit.LeakyBucket, Limit: 10, Per: time.Second}
	minute = ratelimit.Rule{Name: "minute", Algorithm: ratelimit.LeakyBucket, Limit: 1, Per: time.Minute}
)

// program is a program with a queue.
type program struct {
	*Queue
	*testing.T
	server *redis.Client
	asked  atomic.Int64 // how often its limiter has decided
}

func newProgram(t *testing.T, server *redistest.Server, rule ratelimit.Rule) *program {
	p := &program{T: t, server: redis.NewClient(&redis.Options{Addr: server.Addr, ReadTimeout: time.Minute, MaxRetries: -1})}
	t.Cleanup(func() { p.server.Close() })
	observe := func(_ context.Context, e *ratelimit.Event) {
		if e.Kind == ratelimit.EventAdmitted || e.Kind == ratelimit.EventRefused {
			p.asked.Add(1)
		}
	}
	limiter := ratelimit.New(redisstore.New(p.server, redisstore.WithTimeout(time.Minute)), ratelimit.WithPrefix("test"), ratelimit.WithObserver(observe))
	p.Queue = NewQueue("test", rule, limiter, p.server)
	p.late = time.Minute // the machine may be busy
	return p
}

// add enqueues a task with a number.
func (p *program) add(number int) *Job {
	p.Helper()
	job, err := p.Enqueue(p.Context(), "number", []byte(strconv.Itoa(number)))
	if err != nil {
		p.Fatal(err)
	}
	return job
}

// work runs tasks until the test is over.
func (p *program) work(handler asynq.Handler) *asynq.Server {
	p.Helper()
	worker, err := p.Work(handler)
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(worker.Shutdown)
	return worker
}

// wantTasks expects the queue to have as many tasks that are not running.
func (p *program) wantTasks(want int) {
	p.Helper()
	if info, err := p.inspector.GetQueueInfo(p.name); err != nil || info.Size != want {
		p.Errorf("the queue has %+v, %v; expected %d tasks", info, err, want)
	}
}

// attempt is one attempt to run a task.
type attempt struct {
	number, tried int
	place, begun  time.Time
}

// attempts is a handler that notes them. All of them fail if it has an error.
type attempts struct {
	mu  sync.Mutex
	all []attempt
	err error
}

// ProcessTask implements asynq.Handler.
func (a *attempts) ProcessTask(_ context.Context, task *asynq.Task) error {
	begun := time.Now()
	place, _ := placeOf(task)
	number, _ := strconv.Atoi(string(task.Payload()))
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, attempt{number, tried(task), place, begun})
	return a.err
}

// await waits for n attempts and returns them by their places. It expects each at its place or later.
func (a *attempts) await(t *testing.T, n int) []attempt {
	t.Helper()
	got := func() []attempt {
		a.mu.Lock()
		defer a.mu.Unlock()
		return slices.SortedFunc(slices.Values(a.all), func(a, b attempt) int { return a.place.Compare(b.place) })
	}
	redistest.Eventually(t, strconv.Itoa(n)+" attempts", func() bool { return len(got()) >= n })
	for _, one := range got() {
		if one.begun.Before(one.place) {
			t.Errorf("%+v: begun %v early", one, one.place.Sub(one.begun))
		}
	}
	return got()
}

// Three programs enqueue at once, and two of them work. Each task is told its own place, and runs then; nobody asks again.
func TestRunsAtItsPlace(t *testing.T) {
	server := redistest.Start(t)
	programs := []*program{newProgram(t, server, tenth), newProgram(t, server, tenth), newProgram(t, server, tenth)}
	const each = 4
	told := make([]time.Time, len(programs)*each)
	var all sync.WaitGroup
	for i := range told {
		all.Go(func() { told[i] = programs[i/each].add(i).place.At })
	}
	var done attempts
	workers := []*asynq.Server{programs[0].work(&done), programs[1].work(&done)}
	all.Wait()
	done.await(t, len(told))
	for _, worker := range workers {
		worker.Shutdown()
	}
	got := done.await(t, len(told))
	if len(got) != len(told) {
		t.Fatalf("%d attempts; expected %d", len(got), len(told))
	}
	asked := 0
	for _, p := range programs {
		asked += int(p.asked.Load())
	}
	if asked != len(told) {
		t.Errorf("the limiter was asked %d times; expected %d", asked, len(told))
	}
	for i, one := range got {
		if !one.place.Equal(told[one.number]) {
			t.Errorf("task %d was told %v, and has run for %v", one.number, told[one.number], one.place)
		}
		told[one.number] = time.Time{} // it has run
		if i > 0 && one.place.Sub(got[i-1].place) < tenth.Per/10 {
			t.Errorf("places at %v and %v", got[i-1].place, one.place)
		}
	}
}

// Tasks that have missed their places get new ones.
func TestMissesItsPlace(t *testing.T) {
	p := newProgram(t, redistest.Start(t), tenth)
	p.late = 200 * time.Millisecond
	var last time.Time
	for i := range 3 {
		last = p.add(i).place.At
	}
	time.Sleep(time.Until(last.Add(p.late + time.Millisecond)))
	began := time.Now()
	var done attempts
	worker := p.work(&done)
	done.await(t, 3)
	worker.Shutdown()
	got := done.await(t, 3)
	if len(got) != 3 || got[0].place.Before(began) || p.asked.Load() < 6 {
		t.Errorf("attempts %+v, %d places, since %v; expected three, at new places", got, p.asked.Load(), began)
	}
}

// A task that fails comes again at another place each time, as often as it may.
func TestFails(t *testing.T) {
	p := newProgram(t, redistest.Start(t), tenth)
	p.retries = 2
	var delays []int
	p.backoff = func(n int, _ error, _ *asynq.Task) time.Duration {
		delays = append(delays, n)
		return 0
	}
	p.add(1)
	failing := attempts{err: errors.New("as the test wants it")}
	worker := p.work(&failing)
	redistest.Eventually(t, "the task is archived", func() bool {
		info, err := p.inspector.GetQueueInfo(p.name)
		return err == nil && info.Archived == 1
	})
	worker.Shutdown()
	got := failing.await(t, 3)
	for i, one := range got {
		if one.tried != i || i > 0 && one.place.Before(got[i-1].begun) {
			t.Errorf("attempt %d: %+v", i, one)
		}
	}
	if len(got) != 3 || p.asked.Load() != 3 || !slices.Equal(delays, []int{0, 1}) {
		t.Errorf("%d attempts at %d places, delays of %d; expected 3 and 3, and delays of 0 and 1", len(got), p.asked.Load(), delays)
	}
}

// The next task gets the place of one that is cancelled. Who comes later keeps his.
func TestCancel(t *testing.T) {
	p := newProgram(t, redistest.Start(t), minute)
	var jobs []*Job
	for i := range 10 {
		jobs = append(jobs, p.add(i))
	}
	for _, cancelled := range []*Job{jobs[9], jobs[5]} {
		if err := cancelled.Cancel(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := cancelled.Cancel(t.Context()); !errors.Is(err, asynq.ErrTaskNotFound) {
			t.Errorf("cancelled twice: %v", err)
		}
		if job := p.add(10); !job.place.At.Equal(cancelled.place.At) {
			t.Errorf("told %v; expected %v", job.place.At, cancelled.place.At)
		}
	}
	if job := p.add(10); !job.place.At.Equal(jobs[9].place.At.Add(time.Minute)) {
		t.Errorf("told %v; expected a minute after %v", job.place.At, jobs[9].place.At)
	}
	p.wantTasks(11)
}

// A task that is cancelled after an attempt gives no place back: the attempt has used it.
func TestCancelAfterFailure(t *testing.T) {
	p := newProgram(t, redistest.Start(t), minute)
	p.backoff = func(int, error, *asynq.Task) time.Duration { return time.Hour }
	job := p.add(0)
	p.work(&attempts{err: errors.New("as the test wants it")})
	redistest.Eventually(t, "the task has failed", func() bool {
		info, err := p.inspector.GetQueueInfo(p.name)
		return err == nil && info.Retry == 1
	})
	if err := job.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	if next := p.add(1); !next.place.At.Equal(job.place.At.Add(time.Minute)) {
		t.Errorf("told %v; expected a minute after %v", next.place.At, job.place.At)
	}
}

// A producer is refused if no place is near enough, whatever the deadline of its own context says.
func TestIsFull(t *testing.T) {
	p := newProgram(t, redistest.Start(t), minute)
	const lacking = 30 * time.Second
	p.ahead = 5*time.Minute - lacking
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i := range 6 {
		_, err := p.Enqueue(ctx, "number", []byte(strconv.Itoa(i)))
		refusal, full := errors.AsType[*ratelimit.TooManyRequestsError](err)
		if full != (i == 5) || full && (refusal.RetryAfter <= 0 || refusal.RetryAfter > lacking) {
			t.Errorf("task %d: %v", i, err)
		}
	}
	p.wantTasks(5)
}

// lossy is a hook that loses the reply of the next script, after the server has run it.
type lossy struct {
	redis.Hook
	lose atomic.Bool
}

func (l *lossy) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if strings.HasPrefix(cmd.Name(), "eval") && err == nil && l.lose.CompareAndSwap(true, false) {
			err = io.ErrUnexpectedEOF
			cmd.SetErr(err)
		}
		return err
	}
}

func (l *lossy) DialHook(next redis.DialHook) redis.DialHook { return next }
func (l *lossy) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// The place of a task that asynq has not taken goes back. If the reply of asynq is lost, the task is taken out.
func TestEnqueueFails(t *testing.T) {
	server := redistest.Start(t)
	p, asynqs := newProgram(t, server, minute), newProgram(t, server, minute)
	p.client, p.inspector = asynqs.client, asynqs.inspector
	reply := new(lossy)
	asynqs.server.AddHook(reply)
	p.add(0)
	last := p.add(1).place.At
	if _, err := p.Enqueue(t.Context(), "", nil); err == nil {
		t.Error("a task without a type was enqueued")
	}
	reply.lose.Store(true)
	if _, err := p.Enqueue(t.Context(), "number", nil); err == nil || !strings.Contains(err.Error(), io.ErrUnexpectedEOF.Error()) {
		t.Errorf("after a lost reply: %v", err)
	}
	p.wantTasks(2)
	if job := p.add(2); !job.place.At.Equal(last.Add(time.Minute)) {
		t.Errorf("told %v; expected a minute after %v", job.place.At, last)
	}
}

// A task that somebody else has put into the queue has no place, and does not run.
func TestHasNoPlace(t *testing.T) {
	p := newProgram(t, redistest.Start(t), tenth)
	if _, err := p.client.Enqueue(asynq.NewTask("number", nil), asynq.Queue(p.name)); err != nil {
		t.Fatal(err)
	}
	var done attempts
	p.work(&done)
	redistest.Eventually(t, "the task is archived", func() bool {
		info, err := p.inspector.GetQueueInfo(p.name)
		return err == nil && info.Archived == 1
	})
	if got := done.await(t, 0); len(got) != 0 {
		t.Errorf("it has run: %+v", got)
	}
}

// Every mail of the demonstration is told a time and sent, except the one that is cancelled.
func TestStory(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out, "redis://"+redistest.Start(t).Addr+"?read_timeout=1m"); err != nil {
		t.Fatal(err)
	}
	count := func(pattern string) int {
		return len(regexp.MustCompile("(?m)"+pattern+"$").FindAllString(out.String(), -1))
	}
	told := count(`mail \d+ is told \d+\.\d+ s`)
	if told < 5 || count(`mail \d+ is sent.*`) != told-1 || count(`mail 2 is not sent: .*`) != 1 || count(`is refused: .*`) != 1 || count(`is cancelled`) != 1 {
		t.Errorf("printed\n%s", &out)
	}
}

func TestNeedsServer(t *testing.T) {
	for url, want := range map[string]string{"": "such as redis://127.0.0.1:6379", "x:": "REDIS_URL: "} {
		if err := run(t.Context(), io.Discard, url); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", url, err)
		}
	}
}
