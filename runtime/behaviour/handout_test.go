package behaviour_test

import (
	"testing"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
)

type work interface {
	//ratelimit:rule name=exec limit=1 per=1h
	exec() error
}

//ratelimit:rule name=hook limit=1 per=1h
type hook func() error

type signals struct {
	//ratelimit:rule name=run limit=1 per=1h
	run  func() error
	open func() work
}

// desk hands out work and takes it back.
type desk interface {
	//ratelimit:rule name=begin limit=100 per=1h
	begin() (work, error)
	inside(do func(work) work) work
	opened(do func(open func() (work, error)) error) error
	save(w work) work
	saveAll(w ...work)
	hook() hook
	signals() signals
}

// handle is a struct that takes itself.
type handle struct{ n int }

//ratelimit:rule name=do limit=1 per=1h
func (c *handle) Do() error { return nil }

func (c *handle) Self() *handle           { return c }
func (c *handle) Copy() handle            { return *c }
func (c *handle) Merge(o *handle) *handle { return o }
func (c *handle) Take(o handle) int       { return o.n }

//ratelimit:rule name=named key="{o.n}" limit=100 per=1h
func (c *handle) Named(o *handle) error { return nil }

// rows is what a desk makes. Its method flush is optional.
type rows struct{ flushed bool }

func (*rows) exec() error { return nil }
func (r *rows) flush()    { r.flushed = true }

// rowsDesk returns what it is given.
type rowsDesk struct{ of *rows }

func (d *rowsDesk) begin() (work, error) { return d.work(), nil }
func (d *rowsDesk) inside(do func(work) work) work {
	if do == nil {
		return nil
	}
	return do(d.work())
}
func (d *rowsDesk) save(w work) work  { return w }
func (d *rowsDesk) saveAll(w ...work) {}
func (d *rowsDesk) hook() hook {
	if d.of == nil {
		return nil
	}
	return d.of.exec
}
func (d *rowsDesk) signals() signals { return signals{run: d.hook(), open: d.work} }
func (d *rowsDesk) opened(do func(open func() (work, error)) error) error {
	return do(d.begin)
}
func (d *rowsDesk) work() work {
	if d.of == nil {
		return nil
	}
	return d.of
}

// isLimited reports whether the second call is refused.
func isLimited(t *testing.T, call func() error) bool {
	t.Helper()
	if err := call(); err != nil {
		t.Error("the first call is refused", err)
	}
	return call() != nil
}

func inProcess() *ratelimit.Limiter { return ratelimit.New(memstore.New()) }

// What a wrapper hands out has limits: results, arguments of callbacks, funcs, and what funcs open.
func TestWhatIsHandedOutHasLimits(t *testing.T) {
	of := &rows{}
	for what, limited := range map[string]func(d desk) bool{
		"a result": func(d desk) bool {
			w, err := d.begin()
			return err == nil && isLimited(t, w.exec)
		},
		"an argument of a callback": func(d desk) (is bool) {
			d.inside(func(w work) work { is = isLimited(t, w.exec); return w })
			return is
		},
		"the result of an argument": func(d desk) (is bool) {
			err := d.opened(func(open func() (work, error)) error {
				w, err := open()
				is = isLimited(t, w.exec)
				return err
			})
			return is && err == nil
		},
		"a func":                       func(d desk) bool { return isLimited(t, d.hook()) },
		"a struct of funcs":            func(d desk) bool { return isLimited(t, d.signals().run) },
		"what a struct of funcs opens": func(d desk) bool { return isLimited(t, d.signals().open().exec) },
	} {
		if !limited(newLimitedDesk(&rowsDesk{of}, inProcess())) {
			t.Errorf("%s has no limits", what)
		}
	}
}

// The implementation gets back what it made, and nil, and a wrapper that the program made.
func TestWhatWasHandedOutIsTakenBack(t *testing.T) {
	of := &rows{}
	impl, limiter := &rowsDesk{of}, inProcess()
	d := newLimitedDesk(desk(impl), limiter)
	w, _ := d.begin()
	made := newLimitedWork(of, limiter)
	for what, test := range map[string]struct{ give, want work }{
		"its own value":              {w, of},
		"a value that it never made": {of, of},
		"the program's wrapper":      {made, made},
		"nil":                        {nil, nil},
		"a nil wrapper":              {(*limitedWork)(nil), (*limitedWork)(nil)},
	} {
		var got work
		spy := newLimitedDesk(&spyDesk{rowsDesk: impl, got: func(w work) { got = w }}, limiter)
		spy.save(test.give)
		if got != test.want {
			t.Errorf("%s: save got %T", what, got)
		}
		spy.saveAll(of, test.give)
		if got != test.want {
			t.Errorf("%s: saveAll got %T", what, got)
		}
		spy.inside(func(work) work { return test.give })
		if got != test.want {
			t.Errorf("%s: a callback's result is %T", what, got)
		}
	}
	if err := made.exec(); err != nil {
		t.Error(err)
	}
	if d.save(made).exec() == nil {
		t.Error("the program's wrapper has lost its limit")
	}
}

// spyDesk tells what its methods get.
type spyDesk struct {
	*rowsDesk
	got func(work)
}

func (d *spyDesk) save(w work) work  { d.got(w); return w }
func (d *spyDesk) saveAll(w ...work) { d.got(w[len(w)-1]) }
func (d *spyDesk) inside(do func(work) work) work {
	w := d.rowsDesk.inside(do)
	d.got(w)
	return w
}

// Nil is handed out as nil.
func TestNilIsHandedOutAsNil(t *testing.T) {
	d := newLimitedDesk(&rowsDesk{}, inProcess())
	if w, err := d.begin(); w != nil || err != nil {
		t.Error(w, err)
	}
	if d.hook() != nil || d.signals().run != nil || d.signals().open() != nil {
		t.Error("a nil func is no longer nil")
	}
	if d.inside(nil) != nil {
		t.Error("a nil callback is no longer nil")
	}
}

// Unlimited gives the value that is wrapped, with its optional methods.
func TestUnlimitedGivesTheWrappedValue(t *testing.T) {
	of := &rows{}
	w, _ := newLimitedDesk(&rowsDesk{of}, inProcess()).begin()
	w.(interface{ Unlimited() work }).Unlimited().(interface{ flush() }).flush()
	if !of.flushed {
		t.Error("the optional method was not called")
	}
	c := &handle{}
	if newLimitedHandle(c, inProcess()).Unlimited() != c {
		t.Error("not the wrapped struct")
	}
}

// The wrapper of a struct takes wrappers where the struct takes itself.
func TestWrapperOfAStructTakesWrappers(t *testing.T) {
	c := newLimitedHandle(&handle{n: 1}, inProcess())
	other := newLimitedHandle(&handle{n: 2}, inProcess())
	if got := c.Merge(other).Unlimited(); got != other.Unlimited() {
		t.Error(got)
	}
	if c.Merge(nil) != nil {
		t.Error("nil is no longer nil")
	}
	if n := c.Take(other.Copy()); n != 2 {
		t.Error(n)
	}
	if n := c.Take(nil); n != 0 {
		t.Errorf("the value of nil has %d", n)
	}
	if err := c.Named(other); err != nil {
		t.Error(err)
	}
	if err := c.Named(nil); err == nil {
		t.Error("a key of nil is no error")
	}
	if self := c.Self(); self.Do() != nil || c.Do() == nil {
		t.Error("the struct that is handed out has other limits")
	}
}

// What a wrapper hands out costs one allocation, the wrapper, and nothing is allocated when it is taken back.
func TestHandingOutAllocatesOnce(t *testing.T) {
	d := newLimitedDesk(&rowsDesk{&rows{}}, inProcess())
	w, _ := d.begin()
	if n := testing.AllocsPerRun(1000, func() { d.save(w) }); n != 1 {
		t.Errorf("%v allocations", n)
	}
}
