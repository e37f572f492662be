// Package routers shows how routers limit their handlers by package httplimit: those that take middleware of net/http as it is, and
// those with contexts of their own. In each of them GET /hello is limited, and GET /free is not. Run them with go test.
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

// Chi takes middleware as it is.
func Chi(limiter *ratelimit.Limiter) http.Handler {
	router := chi.NewRouter()
	router.With(perClient(limiter)).Get("/hello", hello)
	router.Get("/free", hello)
	return router
}

// Echo has an adapter.
func Echo(limiter *ratelimit.Limiter) http.Handler {
	router := echo.New()
	answer := func(c echo.Context) error { return c.String(http.StatusOK, "hello") }
	router.GET("/hello", answer, echo.WrapMiddleware(perClient(limiter)))
	router.GET("/free", answer)
	return router
}

// Gin has no adapter. With Report outside, its own writer gets the fields.
func Gin(limiter *ratelimit.Limiter) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	router := gin.New()
	answer := func(c *gin.Context) { c.String(http.StatusOK, "hello") }
	router.GET("/hello", wrapGin(perClient(limiter)), answer)
	router.GET("/free", answer)
	return httplimit.Report(router)
}

// wrapGin makes middleware of net/http a handler of gin.
func wrapGin(middleware func(http.Handler) http.Handler) gin.HandlerFunc {
	return func(c *gin.Context) {
		middleware(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			c.Request = r
			c.Next()
		})).ServeHTTP(c.Writer, c.Request)
		c.Abort() // the other handlers have run, or must not
	}
}

func hello(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }
