// Package ginlimit serves rate limits under gin. [Wrap] makes the middleware of package httplimit a handler of gin. [Context] returns the context to
// pass to limited services.
//
//	router := gin.New()
//	router.Use(ginlimit.Wrap(httplimit.ClientIP().Handler))
//	router.Use(ginlimit.Wrap(func(next http.Handler) http.Handler { return httplimit.Report(next) }))
//	router.POST("/codes/:phone", func(c *gin.Context) {
//		err := sender.SendCode(ginlimit.Context(c), c.Param("phone"))
//		httplimit.Answer(c.Writer, c.Request, err)
//	})
//
// All answers keep the fields of the middleware: those with a body, by c.JSON and the like, those without one, streams, refusals, and what gin answers
// when no route fits or a handler has panicked.
package ginlimit
