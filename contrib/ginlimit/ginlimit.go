package ginlimit

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/ratelimit-go/ratelimit/internal/httprequest"
)

// Wrap makes middleware for net/http, such as that of package httplimit, a handler of gin. It stands where gin's own middleware does:
//
//	router.Use(ginlimit.Wrap(httplimit.ClientIP().Handler))
//	router.GET("/news", ginlimit.Wrap(httplimit.Middleware(limiter, httplimit.ClientIP().Of, rules)), news)
//
// The handlers after it run where the middleware calls its next. They find the request that the middleware hands on in c.Request, which stays when
// they have ended, and write through the writer of the middleware, which is c.Writer for so long. If the middleware does not call next, the other
// handlers do not run: the context is aborted.
//
// The middleware is applied once, and may not call next in another goroutine, because contexts of gin are used again. Wrap panics if the
// middleware is nil.
func Wrap(middleware func(http.Handler) http.Handler) gin.HandlerFunc {
	if middleware == nil {
		panic("ginlimit.Wrap: the middleware is nil")
	}
	handler := middleware(http.HandlerFunc(next))
	return func(c *gin.Context) {
		call := &call{context: c, writer: &outerWriter{ResponseWriter: c.Writer}}
		defer func() { c.Writer = call.writer.ResponseWriter }()
		handler.ServeHTTP(call.writer, c.Request.WithContext(context.WithValue(c.Request.Context(), callKey{}, call)))
		if !call.passed {
			c.Abort()
		}
	}
}

// call is one run of a wrapped middleware.
type call struct {
	context *gin.Context
	writer  *outerWriter
	passed  bool // the middleware has called next
}

type callKey struct{}

// next runs the handlers of gin that come after a wrapped middleware.
func next(w http.ResponseWriter, r *http.Request) {
	call, ok := r.Context().Value(callKey{}).(*call)
	if !ok {
		panic("ginlimit.Wrap: the middleware calls next with a context that does not come from its request")
	}
	c, came := call.context, call.context.Request
	call.passed = true
	inner := newInnerWriter(w, call.writer)
	c.Request, c.Writer = r, inner
	defer func() {
		httprequest.Return(r, c.Request) // as the handlers have left it
		httprequest.Return(came, r)
	}()
	c.Next()
	inner.end()
}

// Context returns the context to pass to services and wrappers: that of the request, in which middleware puts the client's address, the user and
// the report. It ends when the request ends. As in c itself, a text key is looked for among what c.Set has stored until now, and then in
// the request. It may be used after the handler has ended, which c may not.
//
// c is a context, too. But unless Engine.ContextWithFallback is true, it never ends, and a rule finds no address and no user in it.
func Context(c *gin.Context) context.Context {
	return requestContext{c.Request.Context(), c.Copy()}
}

// requestContext is the context of a request that also has the values of a copied gin.Context.
type requestContext struct {
	context.Context
	values *gin.Context
}

func (c requestContext) Value(key any) any {
	if v := c.values.Value(key); v != nil {
		return v
	}
	return c.Context.Value(key)
}
