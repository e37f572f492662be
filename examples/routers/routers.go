// Package routers shows how to serve a limited service with several routers. GET /hello/ann calls the service, whose limit is in service.go.
// GET /news has no service: a middleware limits it. GET /free has no limit. Run them with go test.
package routers

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	"github.com/labstack/echo/v4"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/httplimit"
)

// around adds what a limited service needs, to any router: the address of the client for clientIP(ctx), and the fields that tell clients what
// they have left. Behind proxies, pass their prefixes to ClientIP.
func around(router http.Handler) http.Handler {
	return httplimit.ClientIP().Handler(httplimit.Report(router))
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
	mux.HandleFunc("GET /free", news)
	return around(mux)
}

// Chi takes net/http handlers and middleware.
func Chi(greeter Greeter, limiter *ratelimit.Limiter) http.Handler {
	router := chi.NewRouter()
	router.Get("/hello/{name}", func(w http.ResponseWriter, r *http.Request) {
		greet(w, r, greeter, chi.URLParam(r, "name"))
	})
	router.With(perClient(limiter)).Get("/news", news)
	router.Get("/free", news)
	return around(router)
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

func news(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "no news") }

// Echo answers errors with a body of its own, in one place. It has an adapter for net/http middleware.
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
	router.GET("/free", echo.WrapHandler(http.HandlerFunc(news)))
	return around(router)
}

// Gin answers with a body of its own, too. It has no adapter for net/http middleware.
func Gin(greeter Greeter, limiter *ratelimit.Limiter) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	router := gin.New()
	router.GET("/hello/:name", func(c *gin.Context) {
		text, err := greeter.Hello(c.Request.Context(), c.Param("name")) // the context of the request: c itself has no address
		if err != nil {
			status := cmp.Or(httplimit.Status(err), http.StatusInternalServerError)
			httplimit.SetHeaders(c.Writer, err)
			c.JSON(status, gin.H{"error": http.StatusText(status)})
			return
		}
		c.String(http.StatusOK, text)
	})
	router.GET("/news", wrapGin(perClient(limiter)), gin.WrapF(news))
	router.GET("/free", gin.WrapF(news))
	return around(router)
}

// wrapGin converts net/http middleware to a gin handler.
func wrapGin(middleware func(http.Handler) http.Handler) gin.HandlerFunc {
	return func(c *gin.Context) {
		middleware(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			c.Request = r
			c.Next()
		})).ServeHTTP(c.Writer, c.Request)
		c.Abort() // the other handlers have already run, or must not run
	}
}
