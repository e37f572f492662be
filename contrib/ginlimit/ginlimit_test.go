package ginlimit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/ratelimit-go/ratelimit/contrib/ginlimit"
	"github.com/ratelimit-go/ratelimit/contrib/ginlimit/internal/desk"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/httplimit"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.ReleaseMode)
	gin.DefaultErrorWriter = io.Discard // Recovery writes stacks
	os.Exit(m.Run())
}

// limit admits 1,000 calls a minute.
func limit(t *testing.T) func(http.Handler) http.Handler {
	limiter, _ := limittest.New(t)
	return httplimit.Middleware(limiter, httplimit.ClientIP().Of, []ratelimit.Rule{{Name: "calls", Limit: 1000, Per: time.Minute}})
}

func report(next http.Handler) http.Handler { return httplimit.Report(next) }

// nested is some wrapped middleware as one handler.
func nested(middleware ...func(http.Handler) http.Handler) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		for _, m := range middleware {
			next = m(next)
		}
		return next
	}
}

// answers are the ways in which handlers of gin answer.
var answers = map[string]gin.HandlerFunc{
	"JSON":                 func(c *gin.Context) { c.JSON(201, gin.H{"a": "b"}) },
	"String":               func(c *gin.Context) { c.String(200, "hello %s", "ann") },
	"no content":           func(c *gin.Context) { c.Status(204) },
	"status without body":  func(c *gin.Context) { c.Status(403) },
	"nothing":              func(*gin.Context) {},
	"AbortWithStatus":      func(c *gin.Context) { c.AbortWithStatus(401) },
	"AbortWithStatus 200":  func(c *gin.Context) { c.AbortWithStatus(200) },
	"AbortWithStatusJSON":  func(c *gin.Context) { c.AbortWithStatusJSON(409, gin.H{"error": "x"}) },
	"AbortWithError":       func(c *gin.Context) { _ = c.AbortWithError(400, errors.New("bad")) },
	"Status and Error":     func(c *gin.Context) { c.Status(422); _ = c.Error(errors.New("bad")) },
	"Error":                func(c *gin.Context) { _ = c.Error(errors.New("bad")) },
	"status twice":         func(c *gin.Context) { c.Status(204); c.String(203, "x") },
	"status after body":    func(c *gin.Context) { c.String(203, "x"); c.Status(500) },
	"two writes":           func(c *gin.Context) { c.String(200, "x"); _, _ = c.Writer.WriteString("yz") },
	"JSON without a body":  func(c *gin.Context) { c.JSON(304, gin.H{}) },
	"Redirect":             func(c *gin.Context) { c.Redirect(302, "/elsewhere") },
	"File":                 func(c *gin.Context) { c.File("testdata/hello.txt") },
	"Data":                 func(c *gin.Context) { c.Data(200, "text/x", []byte("data")) },
	"panic":                func(*gin.Context) { panic("x") },
	"panic after a status": func(c *gin.Context) { c.Status(202); panic("x") },
	"panic after a body":   func(c *gin.Context) { c.String(202, "x"); panic("x") },
	"net/http": gin.WrapF(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "teapot", http.StatusTeapot)
	}),
	"flush":            func(c *gin.Context) { c.Writer.Flush(); c.String(200, "later") },
	"controlled flush": func(c *gin.Context) { _ = http.NewResponseController(c.Writer).Flush(); c.String(200, "later") },
	"write now": func(c *gin.Context) {
		c.Status(202)
		c.Writer.WriteHeaderNow()
		c.Writer.WriteHeaderNow()
		c.String(200, "x")
	},
	"events": func(c *gin.Context) {
		n := 0
		c.Stream(func(io.Writer) bool { c.SSEvent("n", n); n++; return n < 3 })
	},
	"hijack": func(c *gin.Context) {
		conn, _, err := c.Writer.Hijack()
		if err == nil {
			fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nmine")
			conn.Close()
		}
	},
}

// seen is what a client and handlers around know of an answer.
type seen struct {
	status  int
	body    string
	header  http.Header
	outside string // what handlers around see: status, size and whether it is written
	inside  string // what handlers between see, but not after a panic
}

func (s seen) String() string {
	return fmt.Sprintf("%d %q %v, outside %s, inside %s", s.status, s.body, s.header, s.outside, s.inside)
}

// ask serves a path by gin, with an error handler, Recovery and a logger around the middleware, and a logger in it.
func ask(t *testing.T, path string, middleware gin.HandlerFunc, recovered ...gin.HandlerFunc) seen {
	t.Helper()
	var s seen
	log := func(text *string) gin.HandlerFunc {
		return func(c *gin.Context) {
			before := c.Writer
			c.Next()
			*text = fmt.Sprint(c.Writer.Status(), c.Writer.Size(), c.Writer.Written(), c.IsAborted())
			if c.Writer != before {
				t.Error("c.Writer stays another when the middleware has ended")
			}
		}
	}
	fix := func(c *gin.Context) {
		c.Next()
		if len(c.Errors) > 0 && !c.Writer.Written() {
			c.JSON(-1, c.Errors.JSON())
		}
	}
	router := gin.New()
	router.Use(log(&s.outside), gin.Recovery(), fix, middleware)
	router.Use(recovered...)
	router.Use(log(&s.inside))
	router.GET("/none", func(*gin.Context) { t.Error("not to be called") })
	for name, answer := range answers {
		router.GET("/"+name, answer)
	}
	done := make(chan bool, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		router.ServeHTTP(w, r)
		done <- true
	}))
	defer server.Close()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	r, _ := http.NewRequestWithContext(t.Context(), "GET", server.URL, nil)
	r.URL.Path = path
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(path, err)
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	<-done
	s.status, s.body, s.header = response.StatusCode, string(body), response.Header
	s.header.Del("Date")
	return s
}

// Every answer through wrapped middleware is the one without it, for clients and for handlers around and between, and has the fields.
func TestEveryAnswerKeepsItsFields(t *testing.T) {
	through := func(*gin.Context) {}
	for name, middleware := range map[string]gin.HandlerFunc{
		"Middleware": ginlimit.Wrap(limit(t)), "nested": ginlimit.Wrap(nested(limit(t), report, httplimit.ClientIP().Handler)),
		"ClientIP": ginlimit.Wrap(httplimit.ClientIP().Handler), "Report": ginlimit.Wrap(report),
	} {
		for _, recovered := range [][]gin.HandlerFunc{nil, {gin.Recovery()}, {ginlimit.Wrap(limit(t))}} {
			paths := maps.Clone(answers)
			paths["no such route"] = nil
			for path := range paths {
				want, got := ask(t, "/"+path, through, recovered...), ask(t, "/"+path, middleware, recovered...)
				limited := (name == "Middleware" || name == "nested" || want.header.Get("RateLimit") != "") && path != "hijack"
				if fields := got.header.Get("RateLimit"); strings.HasPrefix(fields, `"calls";r=9`) != limited {
					t.Errorf("%s, %s: the fields are %q", name, path, fields)
				}
				for _, header := range []http.Header{got.header, want.header} {
					header.Del("RateLimit")
					header.Del("RateLimit-Policy")
				}
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%s, %s, %d recovered: got\n%v; expected\n%v", name, path, len(recovered), got, want)
				}
			}
		}
	}
}

// A handler for what has no route is asked, and its answer has the fields, too.
func TestNoRoute(t *testing.T) {
	for status, handler := range map[int]gin.HandlerFunc{
		404: func(c *gin.Context) { c.JSON(404, gin.H{}) }, 410: func(c *gin.Context) { c.Status(410) }, 200: func(c *gin.Context) { c.Status(200) },
	} {
		router := gin.New()
		router.Use(ginlimit.Wrap(limit(t)))
		router.NoRoute(handler)
		w := httptest.NewRecorder()
		router.ServeHTTP(w, httptest.NewRequest("GET", "/nothing", nil))
		if w.Code != status || !strings.HasPrefix(w.Result().Header.Get("RateLimit"), `"calls";r=9`) {
			t.Errorf("got %d, %v; expected %d", w.Code, w.Result().Header, status)
		}
	}
}

// A middleware that does not call next answers alone: nothing after it runs, and what is around sees its answer.
func TestRefusals(t *testing.T) {
	short := httplimit.WithErrorHandler(func(w http.ResponseWriter, _ *http.Request, err error) {
		httplimit.SetHeaders(w, err)
		w.WriteHeader(httplimit.Status(err))
	})
	for name, test := range map[string]struct {
		opts   []httplimit.Option
		size   int
		prefix string
	}{"a problem": {nil, 136, `{"type":`}, "a status": {[]httplimit.Option{short}, 0, ""}} {
		limiter, _ := limittest.New(t)
		rules := []ratelimit.Rule{{Name: "calls", Limit: 1, Per: time.Minute}}
		called, outside := 0, ""
		router := gin.New()
		router.Use(func(c *gin.Context) {
			c.Next()
			outside = fmt.Sprint(c.Writer.Status(), c.Writer.Written(), c.IsAborted(), c.Writer.Size() > 0)
			if !c.Writer.Written() {
				c.String(500, "not answered")
			}
		}, ginlimit.Wrap(httplimit.Middleware(limiter, nil, rules, test.opts...)), func(*gin.Context) { called++ })
		router.GET("/", func(c *gin.Context) { called++; c.String(200, "yes") })
		for i, want := range []struct {
			status         int
			left, outside_ string
		}{{200, `"calls";r=0;t=60`, "200 true false true"}, {429, `"calls";r=0;t=60`, fmt.Sprint("429 true true ", test.size > 0)}} {
			w := httptest.NewRecorder()
			router.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
			header := w.Result().Header
			if w.Code != want.status || header.Get("RateLimit") != want.left || header.Get("RateLimit-Policy") != `"calls";q=1;w=60` ||
				(header.Get("Retry-After") == "60") != (i == 1) || outside != want.outside_ || called != 2 {
				t.Errorf("%s, call %d: got %d, %v, %d handlers called, outside %s; expected %+v", name, i, w.Code, header, called, outside, want)
			}
			if i == 1 && !strings.HasPrefix(w.Body.String(), test.prefix) {
				t.Errorf("%s: got %s", name, w.Body)
			}
		}
	}
}

// shout is middleware of others: it keeps the whole answer back, and writes it in capitals when next has ended.
func shout(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kept := httptest.NewRecorder()
		next.ServeHTTP(kept, r)
		maps.Copy(w.Header(), kept.Header())
		w.Header().Set("X-Status", fmt.Sprint(kept.Code))
		w.WriteHeader(kept.Code)
		_, _ = w.Write(append(bytes.ToUpper(kept.Body.Bytes()), '!'))
	})
}

// Middleware that is not of this module may replace the writer as it likes.
func TestOtherMiddleware(t *testing.T) {
	var inside, outside string
	router := gin.New()
	router.Use(func(c *gin.Context) { c.Next(); outside = fmt.Sprint(c.Writer.Status(), c.Writer.Size()) }, ginlimit.Wrap(shout), ginlimit.Wrap(limit(t)))
	router.Use(func(c *gin.Context) { c.Next(); inside = fmt.Sprint(c.Writer.Status(), c.Writer.Size()) })
	router.GET("/news", func(c *gin.Context) { c.String(203, "hello") })
	router.GET("/empty", func(c *gin.Context) { c.Status(403) })
	for path, want := range map[string]string{"/news": "203 HELLO! inside 203 5, outside 203 6", "/empty": "403 ! inside 403 -1, outside 403 1"} {
		w := httptest.NewRecorder()
		router.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if got := fmt.Sprintf("%d %s inside %s, outside %s", w.Code, w.Body, inside, outside); got != want || w.Header().Get("X-Status") != fmt.Sprint(w.Code) ||
			!strings.HasPrefix(w.Header().Get("RateLimit"), `"calls";r=9`) {
			t.Errorf("%s: got %s, %v; expected %s", path, got, w.Header(), want)
		}
	}
}

// Middleware may send informational responses before the answer. It is told of every status but the 200 of handlers that write nothing.
func TestInformationalResponses(t *testing.T) {
	hint := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", "</style.css>")
			w.WriteHeader(http.StatusEarlyHints)
			told := &told{ResponseWriter: w}
			next.ServeHTTP(told, r)
			if want := map[string]int{"/hello": 203, "/none": 404, "/nothing": 0}[r.URL.Path]; told.status != want {
				t.Errorf("%s: the middleware is told of %d; expected %d", r.URL.Path, told.status, want)
			}
		})
	}
	router := gin.New()
	router.Use(ginlimit.Wrap(limit(t)), ginlimit.Wrap(hint))
	router.GET("/hello", func(c *gin.Context) { c.String(203, "hello") })
	router.GET("/nothing", func(*gin.Context) {})
	server := httptest.NewServer(router)
	defer server.Close()
	for path, want := range map[string]int{"/hello": 203, "/none": 404, "/nothing": 200} {
		hints := 0
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(int, textproto.MIMEHeader) error { hints++; return nil }})
		r, _ := http.NewRequestWithContext(ctx, "GET", server.URL+path, nil)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want || hints != 1 || response.Header.Get("RateLimit") == "" {
			t.Errorf("%s: got %d, %d hints, %v; expected %d", path, response.StatusCode, hints, response.Header, want)
		}
	}
}

// told notes the status that is written.
type told struct {
	http.ResponseWriter
	status int
}

func (w *told) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

type key string

// What handlers set in the request is in the request outside of gin, and c.Request stays what they have left.
func TestRequest(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/users/{id}", func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		if r.PathValue("id") == "panics" {
			panic("x")
		}
	})
	for _, middleware := range [][]gin.HandlerFunc{nil, {ginlimit.Wrap(limit(t))}, {ginlimit.Wrap(limit(t)), ginlimit.Wrap(httplimit.ClientIP().Handler), ginlimit.Wrap(shout)}} {
		for _, id := range []string{"7", "panics"} {
			router := gin.New()
			router.Use(gin.Recovery(), func(c *gin.Context) {
				defer func() {
					if c.Request.Context().Value(key("user")) != "ann" || c.Request.Pattern != "/users/{id}" {
						t.Errorf("%d middlewares: in the end, c.Request has %v, %q", len(middleware), c.Request.Context(), c.Request.Pattern)
					}
				}()
				c.Next()
			})
			router.Use(middleware...)
			router.GET("/users/*rest", func(c *gin.Context) {
				c.Request = c.Request.WithContext(context.WithValue(c.Request.Context(), key("user"), "ann"))
			}, gin.WrapH(mux))
			r := httptest.NewRequest("GET", "/users/"+id+"?a=b", nil)
			ctx := r.Context()
			router.ServeHTTP(httptest.NewRecorder(), r)
			if middleware != nil && (r.Pattern != "/users/{id}" || r.PathValue("id") != id || r.Form.Get("a") != "b" || r.Context() != ctx) {
				t.Errorf("%d middlewares: the request outside has %q, %q, %v", len(middleware), r.Pattern, r.PathValue("id"), r.Form)
			}
		}
	}
}

func TestMisuse(t *testing.T) {
	for name, f := range map[string]func(){
		"no middleware": func() { ginlimit.Wrap(nil) },
		"another context": func() {
			c, _ := gin.CreateTestContext(httptest.NewRecorder())
			c.Request = httptest.NewRequest("GET", "/", nil)
			ginlimit.Wrap(func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(w, r.WithContext(context.Background())) })
			})(c)
		},
	} {
		func() {
			defer func() {
				if text := fmt.Sprint(recover()); !strings.HasPrefix(text, "ginlimit.Wrap: the middleware ") {
					t.Errorf("%s: got %s", name, text)
				}
			}()
			f()
		}()
	}
}

// Context has what c.Set stored and what is in the request, ends with the request, and stays as it is when c is used again.
func TestContext(t *testing.T) {
	for _, fallback := range []bool{false, true} {
		var kept context.Context
		router := gin.New()
		router.ContextWithFallback = fallback
		router.Use(ginlimit.Wrap(httplimit.ClientIP().Handler), func(c *gin.Context) {
			c.Request = c.Request.WithContext(context.WithValue(c.Request.Context(), key("user"), "ann"))
			c.Request = c.Request.WithContext(context.WithValue(c.Request.Context(), "both", "request")) //lint:ignore SA1029 keys of gin are texts
			c.Set("tenant", c.Query("tenant"))
			c.Set("both", "gin")
		})
		router.GET("/", func(c *gin.Context) {
			if kept == nil {
				kept = ginlimit.Context(c)
			}
		})
		ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(time.Hour))
		for _, tenant := range []string{"acme", "other"} {
			router.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/?tenant="+tenant, nil).WithContext(ctx))
			for name, want := range map[any]any{"tenant": "acme", "both": "gin", "absent": nil, key("user"): "ann", key("tenant"): nil} {
				if got := kept.Value(name); got != want {
					t.Errorf("fallback %t, after %s: %v: got %v; expected %v", fallback, tenant, name, got, want)
				}
			}
		}
		end, has := kept.Deadline()
		if want, _ := ctx.Deadline(); !has || end != want || kept.Err() != nil {
			t.Errorf("got %v, %t, %v; expected %v", end, has, kept.Err(), want)
		}
		cancel()
		<-kept.Done()
		if !errors.Is(kept.Err(), context.Canceled) {
			t.Errorf("got %v", kept.Err())
		}
	}
}

// A service called with Context(c) knows the client, and its fields reach the answer.
func TestService(t *testing.T) {
	limiter, _ := limittest.New(t)
	greeter := desk.NewLimitedGreeter(desk.Polite{}, limiter)
	router := gin.New()
	router.Use(ginlimit.Wrap(httplimit.ClientIP().Handler), ginlimit.Wrap(report))
	router.GET("/:name", func(c *gin.Context) {
		text, err := greeter.Greet(ginlimit.Context(c), c.Param("name"))
		if err != nil {
			httplimit.SetHeaders(c.Writer, err)
			c.JSON(httplimit.Status(err), gin.H{"error": "slow down"})
			return
		}
		c.String(200, text)
	})
	for i, want := range []string{`200 hello ann "greetings";r=1;t=60`, `200 hello ann "greetings";r=0;t=60`, `429 {"error":"slow down"} "greetings";r=0;t=60`} {
		w := httptest.NewRecorder()
		router.ServeHTTP(w, httptest.NewRequest("GET", "/ann", nil))
		header := w.Result().Header
		if got := fmt.Sprint(w.Code, " ", w.Body, " ", header.Get("RateLimit")); got != want || header.Get("RateLimit-Policy") != `"greetings";q=2;w=60` ||
			(header.Get("Retry-After") == "60") != (i == 2) {
			t.Errorf("call %d: got %s, %v; expected %s", i, got, header, want)
		}
	}
}

// A guard whose context is c finds the client's address only with ContextWithFallback. Without it, the log names the cure.
func TestGuard(t *testing.T) {
	for _, fallback := range []bool{false, true} {
		log := new(bytes.Buffer)
		limiter, _ := limittest.New(t, ratelimit.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
		handlers, got := desk.New(limiter), []int{}
		router := gin.New()
		router.ContextWithFallback = fallback
		router.Use(ginlimit.Wrap(httplimit.ClientIP().Handler))
		router.GET("/", func(c *gin.Context) { httplimit.Answer(c.Writer, c.Request, handlers.Ask(c)) })
		for range 3 {
			w := httptest.NewRecorder()
			router.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
			got = append(got, w.Code)
		}
		want := []int{500, 500, 500}
		if fallback {
			want = []int{200, 200, 429}
		}
		const cure = "under gin, set ContextWithFallback or pass ginlimit.Context(c)"
		if !reflect.DeepEqual(got, want) || strings.Contains(log.String(), cure) == fallback {
			t.Errorf("fallback %t: got %v, %s; expected %v", fallback, got, log, want)
		}
	}
}

// The server removes the files of forms that handlers of gin parse.
func TestFormFilesAreRemoved(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	router := gin.New()
	router.MaxMultipartMemory = 1
	router.Use(ginlimit.Wrap(limit(t)))
	router.POST("/", func(c *gin.Context) {
		_, err := c.FormFile("file")
		if files, _ := filepath.Glob(folder + "/*"); err != nil || len(files) == 0 {
			t.Errorf("no file: %v", err)
		}
	})
	server := httptest.NewServer(router)
	const body = "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\ncontents\r\n--x--\r\n"
	response, err := http.Post(server.URL, "multipart/form-data; boundary=x", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	server.Close()
	if files, _ := filepath.Glob(folder + "/*"); len(files) > 0 {
		t.Errorf("%q are left", files)
	}
}
