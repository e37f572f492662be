// Package routers shows how to serve a limited service with several routers. GET /hello/ann calls the service, whose limit is in service.go.
// GET /news and GET /closed have no service: a middleware limits them. GET /free has no limit. Run them with go test.
package routers

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	"github.com/labstack/echo/v4"

	"github.com/ratelimit-go/ratelimit/contrib/ginlimit"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/httplimit"
)

// around adds what a limited service needs, to any router: the address of the client for clientIP(ctx), and the fields that tell clients what
// they have left. Behind proxies, pass their prefixes to ClientIP.
func around(router http.Handler) http.Handler {
	return httplimit.ClientIP().Handler(report(router))
}

func report(next http.Handler) http.Handler { return httplimit.Report(next) }

// logged is a middleware of your own, outside of the limits. When next has ended, the request has the pattern that a router inside has found.
func logged(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { slog.InfoContext(r.Context(), "request", "method", r.Method, "pattern", r.Pattern) }()
		next.ServeHTTP(w, r)
	})
}

// perClient limits each address to three requests a minute, without a directive.
func perClient(limiter *ratelimit.Limiter) func(http.Handler) http.Handler {
	return httplimit.Middleware(limiter, httplimit.ClientIP().Of, []ratelimit.Rule{{Name: "news", Limit: 3, Per: time.Minute}})
}

// ServeMux is the router of net/http.
func ServeMux(greeter Greeter, limiter *ratelimit.Limiter) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /hello/{name}", func(w http.ResponseWriter, r *http.Request) {
		greet(w, r, greeter, r.PathValue("name"))
	})
	mux.Handle("GET /news", perClient(limiter)(http.HandlerFunc(news)))
	mux.Handle("GET /closed", perClient(limiter)(http.HandlerFunc(closed)))
	mux.HandleFunc("GET /free", news)
	return logged(around(mux))
}

// Chi takes net/http handlers and middleware. It sets the pattern in the request of the middleware that it uses, and not outside of the router.
func Chi(greeter Greeter, limiter *ratelimit.Limiter) http.Handler {
	router := chi.NewRouter()
	router.Use(logged, around)
	router.Get("/hello/{name}", func(w http.ResponseWriter, r *http.Request) {
		greet(w, r, greeter, chi.URLParam(r, "name"))
	})
	router.With(perClient(limiter)).Get("/news", news)
	router.With(perClient(limiter)).Get("/closed", closed)
	router.Get("/free", news)
	return router
}

// greet answers with a greeting, or with the standard answer to an error.
func greet(w http.ResponseWriter, r *http.Request, greeter Greeter, name string) {
	text, err := greeter.Hello(r.Context(), name)
	if err != nil {
		httplimit.Answer(w, r, err)
		return
	}
	fmt.Fprint(w, text)
}

func closed(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }

func news(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "no news") }

// Echo answers errors with a body of its own, in one place. It has an adapter for net/http middleware. An error that a handler returns is answered
// when that middleware has ended: its fields are in the answer, but it does not know the status, and running calls have given back their permits.
// Where that matters, let answered stand after it.
func Echo(greeter Greeter, limiter *ratelimit.Limiter) http.Handler {
	router := echo.New()
	router.HTTPErrorHandler = func(err error, c echo.Context) {
		status := httplimit.Status(err)
		if status == 0 {
			router.DefaultHTTPErrorHandler(err, c) // an error of something else
			return
		}
		httplimit.SetHeaders(c.Response(), err)
		_ = c.JSON(status, map[string]string{"error": http.StatusText(status)}) // fails only if the client has gone
	}
	router.GET("/hello/:name", func(c echo.Context) error {
		text, err := greeter.Hello(c.Request().Context(), c.Param("name"))
		if err != nil {
			return err
		}
		return c.String(http.StatusOK, text)
	})
	router.GET("/news", echo.WrapHandler(http.HandlerFunc(news)), echo.WrapMiddleware(perClient(limiter)))
	router.GET("/closed", func(echo.Context) error { return echo.ErrServiceUnavailable }, echo.WrapMiddleware(perClient(limiter)), answered)
	router.GET("/free", echo.WrapHandler(http.HandlerFunc(news)))
	return around(router)
}

// answered answers the errors of next while the middleware around it still runs.
func answered(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if err := next(c); err != nil {
			c.Error(err)
		}
		return nil
	}
}

// Gin answers with a body of its own, too. Package ginlimit is its adapter for net/http middleware.
func Gin(greeter Greeter, limiter *ratelimit.Limiter) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	router := gin.New()
	router.Use(ginlimit.Wrap(around))
	router.GET("/hello/:name", func(c *gin.Context) {
		text, err := greeter.Hello(ginlimit.Context(c), c.Param("name")) // c itself has no address
		if err != nil {
			status := cmp.Or(httplimit.Status(err), http.StatusInternalServerError)
			httplimit.SetHeaders(c.Writer, err)
			c.JSON(status, gin.H{"error": http.StatusText(status)})
			return
		}
		c.String(http.StatusOK, text)
	})
	router.GET("/news", ginlimit.Wrap(perClient(limiter)), func(c *gin.Context) { c.String(http.StatusOK, "no news") })
	router.GET("/closed", ginlimit.Wrap(perClient(limiter)), func(c *gin.Context) { c.AbortWithStatus(http.StatusServiceUnavailable) })
	router.GET("/free", gin.WrapF(news))
	return router
}
