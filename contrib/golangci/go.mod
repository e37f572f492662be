module github.com/ratelimit-go/ratelimit/contrib/golangci

go 1.26.0

require (
	github.com/golangci/plugin-module-register v0.1.2
	github.com/ratelimit-go/ratelimit v0.0.0
	golang.org/x/tools v0.52.0
)

require (
	github.com/dave/jennifer v1.7.1 // indirect
	github.com/expr-lang/expr v1.17.8 // indirect
	github.com/robfig/cron/v3 v3.0.1 // indirect
)

replace github.com/ratelimit-go/ratelimit => ../..
