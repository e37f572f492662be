# Two commands do everything: make demo, make test. They need Go and make, and find or install the rest.

RACE = -race
SEQUENTIAL = ./annotations ./cmd/ratelimit ./generator ./generator/internal/... ./internal/readme ./internal/engine ./internal/simulate ./runtime/redisstore/lua ./scripts # what these test starts no goroutines: nothing to race
TEST = go test -ldflags=-w # leaves out what debuggers need, so tests are linked faster
FUZZTIME = 30s # of each fuzz target
MODULES = browser faults benchmarks contrib/golangci contrib/otellimit contrib/promlimit contrib/grpclimit contrib/ginlimit examples/jobs examples/routers examples/shop testdata/grpc # beside the one at the root; the slow ones first
BITS32 = ./runtime ./internal/engine ./internal/memory ./runtime/memstore ./internal/fleet ./runtime/redisstore/... # run on platforms of 32 bits
NEWEST = $(wildcard contrib/*/newest.mod)
GENERATED = testdata/grpc contrib/grpclimit contrib/ginlimit examples/shop examples/routers # modules with directives
USED = . contrib/golangci contrib/otellimit contrib/promlimit contrib/grpclimit contrib/ginlimit examples/jobs examples/routers examples/shop # modules that users build, on any platform
STATICCHECK = go run honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: help demo release test newest platforms alerts dashboard faults model expressions fuzz wild bench instructions generate pictures check lint

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' Makefile | expand -t 16

demo: ## generate the wrapper of examples/sms and run it
	go run ./cmd/ratelimit ./examples/sms
	go run ./examples/sms

test: ## every test of every module, with the race detector where goroutines run; RACE= leaves that out
	sh scripts/test-needs.sh server promtool chromium axe $(if $(RACE),compiler)
	@MAKE=$(MAKE) sh scripts/each.sh test-parallel test-sequential test-allocations alerts $(MODULES:%=test/%)

test-parallel:
	$(if $(RACE),CGO_ENABLED=1) $(TEST) $(RACE) $$(go list ./... | grep -vxF "$$(go list $(SEQUENTIAL))")

test-sequential:
	$(TEST) -p 1 $(SEQUENTIAL) # beside the others

test-allocations: # without the race detector, which makes pools forget
	go test -run=AllocatesNothing ./runtime ./runtime/wrap

$(MODULES:%=test/%): test/%:
	cd $* && $(TEST) ./...

newest: ## test the modules of contrib with the newest versions of what they require; go.mod has the oldest
	sh scripts/test-needs.sh server
	@MAKE=$(MAKE) sh scripts/each.sh $(NEWEST:%/newest.mod=newest/%)

$(NEWEST:%/newest.mod=newest/%): newest/%:
	cd $* && go test -modfile=newest.mod ./...

platforms: ## run the tests of the stores with 32 bits, and check all that users build for ARM with 32 bits and for Windows
	sh scripts/test-needs.sh server
	case $$(go env GOHOSTOS GOHOSTARCH | tr '\n' /) in linux/amd64/) GOARCH=386 go test -p 4 $(BITS32);; esac # others cannot run it
	for p in linux/arm windows/amd64; do for m in $(USED); do (cd $$m && export GOOS=$${p%/*} GOARCH=$${p#*/} && go build -o /dev/null ./... && go vet ./...) || exit; done; done

dashboard: ## draw contrib/promlimit/dashboard.svg from a run of examples/shop
	cd examples/shop && go run ./dashboard -out ../../contrib/promlimit/dashboard.svg

alerts: ## test contrib/promlimit/alerts.yaml by promtool
	sh scripts/test-needs.sh promtool
	promtool check rules contrib/promlimit/alerts.yaml
	promtool test rules contrib/promlimit/alerts_test.yml

model: ## compare the store in process with the model over a million random steps, and the script with the engine over ten million
	sh scripts/test-needs.sh server
	go test -count=1 -v -timeout=2h -run=ScriptLikeEngine ./runtime/redisstore/lua -differential.steps=10000000
	go test -count=1 -v -timeout=2h -run=Model ./runtime/behaviour -model.memory=1000000

faults: ## break servers, networks, clocks and programs under load for about 15 minutes, and check that no limit is exceeded
	sh scripts/test-needs.sh server
	cd faults && go test -count=1 -v -timeout=1h -tags=faults . -endurance=10m

expressions: ## compare 200,000 results of lowered expressions with those of expr
	go test -count=1 -v -timeout=1h -run=LikeExpr ./generator/internal/expr -batches=8

fuzz: ## run each fuzz target for 30 seconds; FUZZTIME= sets another time
	sh scripts/fuzz.sh $(FUZZTIME) . $(MODULES)

wild: ## generate and compile wrappers for the interfaces of the standard library and of large modules
	go test -count=1 -v -timeout=2h -tags=wild -run=Wild ./generator/...

bench: ## measure everything, print the costs of twelve keys, and write benchmarks/README.md
	sh scripts/test-needs.sh server
	go test -run=- -bench=Keys ./generator/internal/emit
	cd benchmarks && go run . -out README.md && go run . -only generate -out README.md

instructions: ## count the instructions of a decision; needs valgrind
	sh scripts/test-needs.sh server
	cd benchmarks && go run . -only instructions

generate: ## generate what is committed
	go run ./cmd/ratelimit ./...
	for m in $(GENERATED); do (cd $$m && go generate ./...) || exit; done
	go test -count=1 -run=Docs ./annotations -update

pictures: ## draw docs/pictures with ratelimit simulate
	go test -count=1 -run=Pictures ./cmd/ratelimit -draw

check: ## report generated files that are stale
	go run ./cmd/ratelimit -check ./...
	for m in $(GENERATED); do (cd $$m && go tool ratelimit -check ./...) || exit; done

release: ## tag the modules as VERSION=v0.1.0, with which CHANGELOG.md begins; pushes nothing
	sh scripts/release.sh "$(VERSION)"

lint: ## gofmt, go mod tidy, go vet, ratelimit vet, staticcheck
	@unformatted=$$(find . -name '*.go' -not -path '*/testdata/*' -exec gofmt -l {} +); \
	if [ -n "$$unformatted" ]; then echo "gofmt -w is due for:"; echo "$$unformatted"; exit 1; fi
	go mod tidy -diff
	go vet ./...
	go run ./cmd/ratelimit vet ./examples/...
	$(STATICCHECK) ./...
	failed=; for m in $(MODULES); do (cd $$m && go mod tidy -diff && go vet ./... && $(STATICCHECK) ./...) || failed="$$failed $$m"; done; \
	if [ -n "$$failed" ]; then echo "failed:$$failed"; exit 1; fi
