# retryx: run `make` to see what can be made.
LINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
VULN := golang.org/x/vuln/cmd/govulncheck@v1.1.4
RELEASER := github.com/goreleaser/goreleaser/v2@v2.16.0
comma := ,
PORTS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 freebsd/amd64 freebsd/arm64

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z -]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build ./retryx
	CGO_ENABLED=0 go build -trimpath -o retryx .

.PHONY: test
test: ## run every test
	go test ./...
	cd bench && go test ./...

.PHONY: race
race: ## run every test with the race detector, in random order
	go test -race -shuffle=on -timeout 20m ./...
	cd bench && go test -race -shuffle=on ./...

.PHONY: lint
lint: ## check formatting, fences and common slips
	go run $(LINT) run ./...
	cd bench && go run $(LINT) run ./...

.PHONY: cross
cross: ## vet for every system, build for every release target
	@for os in linux darwin freebsd; do echo "vet $$os"; export GOOS=$$os CGO_ENABLED=0; \
	  go vet ./... && (cd bench && go vet ./...) || exit 1; done
	@for p in $(PORTS); do echo "build $$p"; \
	  GOOS=$${p%/*} GOARCH=$${p#*/} CGO_ENABLED=0 go build -trimpath -o /dev/null . || exit 1; done

.PHONY: generate
generate: ## write the generated files anew
	go generate ./...
	UPDATE_GENERATED=1 go test ./cmd -run TestGeneratedFiles -count=1

.PHONY: completions man
completions man: generate ## write completions and the manual page anew

.PHONY: fuzz
fuzz: ## run each fuzz test for 20 seconds
	@for p in $$(go list ./...); do for f in $$(go test -list '^Fuzz' $$p | grep '^Fuzz'); do \
	  echo $$p $$f; go test -run '^$$' -fuzz "^$$f\$$" -fuzztime 20s $$p || exit 1; done; done

.PHONY: vuln
vuln: ## look for known vulnerabilities
	go run $(VULN) ./...
	cd bench && go run $(VULN) ./...

.PHONY: bench
bench: ## reproduce the figures of the documentation
	bench/all.sh

.PHONY: release-snapshot
release-snapshot: ## build every package without publishing anything, and use one
	go run $(RELEASER) check
	go run $(RELEASER) release --snapshot --clean --skip=publish$(if $(shell command -v syft),,$(comma)sbom)
	WALK_DEB=$$(ls "$$PWD"/dist/*_linux_$$(go env GOARCH).deb) go test ./cmd -run TestNewcomersWalk -count=1 -v
