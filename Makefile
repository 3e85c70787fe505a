# retryx: `make help` lists what can be made.
LINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
VULN := golang.org/x/vuln/cmd/govulncheck@latest
RELEASER := github.com/goreleaser/goreleaser/v2@latest
PORTS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 freebsd/amd64 freebsd/arm64

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build ./retryx
	CGO_ENABLED=0 go build -trimpath -o retryx .

.PHONY: test
test: ## run every test
	go test ./...

.PHONY: race
race: ## run every test with the race detector, in random order
	go test -race -shuffle=on ./...

.PHONY: lint
lint: ## check formatting, fences and common slips
	go run $(LINT) run ./...

.PHONY: cross
cross: ## vet and build for every release target
	@for p in $(PORTS); do echo $$p; GOOS=$${p%/*} GOARCH=$${p#*/} CGO_ENABLED=0 go vet ./... && \
	  GOOS=$${p%/*} GOARCH=$${p#*/} CGO_ENABLED=0 go build -o /dev/null . || exit 1; done

.PHONY: generate
generate: ## write the generated files anew
	go generate ./...
