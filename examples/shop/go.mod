module github.com/ratelimit-go/ratelimit/examples/shop

go 1.26.0

require (
	github.com/prometheus/client_golang v1.25.0
	github.com/ratelimit-go/ratelimit v0.0.0
	github.com/ratelimit-go/ratelimit/contrib/grpclimit v0.0.0
	github.com/ratelimit-go/ratelimit/contrib/promlimit v0.0.0
	github.com/redis/go-redis/v9 v9.23.0
	golang.org/x/sync v0.24.0
	google.golang.org/grpc v1.85.0
	google.golang.org/protobuf v1.36.12
)

require (
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dave/jennifer v1.7.1 // indirect
	github.com/expr-lang/expr v1.17.8 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/prometheus/client_model v0.6.3 // indirect
	github.com/prometheus/common v0.72.0 // indirect
	github.com/prometheus/procfs v0.22.0 // indirect
	github.com/robfig/cron/v3 v3.0.1 // indirect
	github.com/rogpeppe/go-internal v1.16.0 // indirect
	github.com/sony/gobreaker/v2 v2.4.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/mod v0.42.0 // indirect
	golang.org/x/net v0.61.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	golang.org/x/tools v0.52.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260817212433-ac3dfec99bb1 // indirect
)

replace (
	github.com/ratelimit-go/ratelimit => ../..
	github.com/ratelimit-go/ratelimit/contrib/grpclimit => ../../contrib/grpclimit
	github.com/ratelimit-go/ratelimit/contrib/promlimit => ../../contrib/promlimit
)

tool github.com/ratelimit-go/ratelimit/cmd/ratelimit
