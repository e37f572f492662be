// Package routers shows how to use package httplimit with several routers: those that take net/http middleware directly, and those that
// have a context type of their own. Each of them limits GET /hello, but not GET /free. Run them with go test.
package routers

import (
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	"github.com/labstack/echo/v4"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/httplimit"
)

// perClient limits each address to three requests a minute.
func perClient(limiter *ratelimit.Limiter) func(http.Handler) http.Handler {
	return httplimit.Middleware(limiter, httplimit.ClientIP().Of, []ratelimit.Rule{{Name: "requests", Limit: 3, Per: time.Minute}})
}

// ServeMux wraps a handler of net/http.
func ServeMux(limiter *ratelimit.Limiter) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /hello", perClient(limiter)(http.HandlerFunc(hello)))
	mux.HandleFunc("GET /free", hello)
	return mux
}

// Chi takes net/http middleware directly.
func Chi(limiter *ratelimit.Limiter) http.Handler {
	router := chi.NewRouter()
	router.With(perClient(limiter)).Get("/hello", hello)
	router.Get("/free", hello)
	return router
}

// Echo has an adapter for net/http middleware.
func Echo(limiter *ratelimit.Limiter) http.Handler {
	router := echo.New()
	answer := func(c echo.Context) error { return c.String(http.StatusOK, "hello") }
	router.GET("/hello", answer, echo.WrapMiddleware(perClient(limiter)))
	router.GET("/free", answer)
	return router
}

// Gin has no adapter. Report wraps the whole router, so that it adds its headers to what gin writes.
func Gin(limiter *ratelimit.Limiter) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	router := gin.New()
	answer := func(c *gin.Context) { c.String(http.StatusOK, "hello") }
	router.GET("/hello", wrapGin(perClient(limiter)), answer)
	router.GET("/free", answer)
	return httplimit.Report(router)
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

func hello(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }
