# Everything a newcomer, a developer or CI needs. Prerequisites: Rust and Python 3, nothing else.

NOTEBOOKS ?= notebooks
# Tests mostly wait for kernels and servers, so one more runs at a time than there are cores.
TEST_THREADS ?= $(shell expr 1 + $$(getconf _NPROCESSORS_ONLN))
# Older versions of jupyter-collaboration, as listed in tests/compat.
VERSIONS ?= 4.4 3.1
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
# Builders other than docker forget the health check in their own format.
IMAGE_BUILDER ?= docker
IMAGE ?= jupyter-mcp-gateway:$(VERSION)
# How long a soak takes, how many agents with how many tokens of how many tenants work in how many notebooks, how long each
# thinks at most between two calls (ms), how many cells it leaves, which percentage of calls it gives up in the middle and which
# of cells it runs, and what the faults follow from.
SOAK_SECONDS ?= 300
SOAK_AGENTS ?= 200
SOAK_TOKENS ?= 12
SOAK_TENANTS ?= 4
SOAK_NOTEBOOKS ?= 12
SOAK_PAUSE ?= 8000
SOAK_CELLS ?= 5
SOAK_CUT ?= 15
SOAK_EXECUTED ?= 25
SOAK_SEED ?= 1

# How long each target is fuzzed, and which they are.
FUZZ_SECONDS ?= 300
FUZZ_TARGETS ?= json_rpc request event_id resource oauth config path notebook_url kernel_frame room_frame document_update room

.PHONY: help run test test-compat soak fuzz lint fmt docs generate bench bench-tokens image image-test compose mcpb dist

help: ## Show what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## Start the gateway with a JupyterLab of its own on ./notebooks (TELEMETRY=console shows traces)
	cargo run --profile quick --no-default-features --locked -- serve --with-jupyter $(NOTEBOOKS) $(if $(TELEMETRY),--telemetry $(TELEMETRY))

test: lint ## Run every check that CI runs, set-up included (TEST_THREADS at a time)
	RUST_TEST_THREADS=$(TEST_THREADS) tests/run

test-compat: ## Run the tests of live documents against older versions of jupyter-collaboration
	for version in $(VERSIONS); do RUST_TEST_THREADS=$(TEST_THREADS) JMG_TEST_COLLABORATION=$$version cargo test --locked --test it rooms || exit 1; done

soak: ## Count what is lost or doubled while Jupyter and the gateway are killed (SOAK_SECONDS, ...)
	$(foreach name,SECONDS AGENTS TOKENS TENANTS NOTEBOOKS PAUSE CELLS CUT EXECUTED SEED,JMG_SOAK_$(name)=$(SOAK_$(name))) \
		cargo test --locked --test it soak:: -- --nocapture

fuzz: target/fuzz-tools/bin/cargo-fuzz ## Feed each parser whatever breaks it (FUZZ_SECONDS each, FUZZ_TARGETS)
	for target in $(FUZZ_TARGETS); do PATH="$(CURDIR)/target/fuzz-tools/bin:$$PATH" cargo fuzz run -s none $$target fuzz/corpus/$$target fuzz/seeds/$$target -- -max_total_time=$(FUZZ_SECONDS) || exit 1; done

target/fuzz-tools/bin/cargo-fuzz:
	cargo install --quiet --locked --root target/fuzz-tools cargo-fuzz@0.13.1

lint: ## Check formatting, lints and docs
	cargo fmt --all --check
	cargo clippy --workspace --locked --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --locked --no-deps --quiet

fmt: ## Format the code
	cargo fmt --all

image: ## Build the container image with IMAGE_BUILDER (docker, podman or buildah) as IMAGE
	BUILDAH_FORMAT=docker $(IMAGE_BUILDER) build --build-arg VERSION=$(VERSION) --build-arg REVISION=$$(git rev-parse HEAD) --tag $(IMAGE) .

compose: ## Start all of it with docker compose: gateway, two JupyterLabs, PostgreSQL, Prometheus, Grafana, collector
	sh deploy/compose/environment.sh
	docker compose --file deploy/compose/compose.yaml up --build

image-test: ## Build the image without a registry, run it read-only as a stranger and call it (root, buildah, mmdebstrap)
	bash tests/deploy/image-test.sh

mcpb: ## Pack the bundle for desktop clients into ./dist (npm)
	sh deploy/desktop-bundle/pack.sh dist

dist: ## Build a release and pack it into ./dist: an archive, a package for Debian, symbols, checksums
	cargo build --release --locked
	sh deploy/dist.sh target/release/jupyter-mcp-gateway dist

docs: ## Write the page with every tool, src/tools/README.md
	cargo run --quiet --locked -- tools --toolsets all --markdown > src/tools/README.tmp
	mv src/tools/README.tmp src/tools/README.md

generate: ## Write the chart's schema and README, and the dashboards
	python3 -B deploy/generate

bench: ## Measure the gateway beside bare servers and clients
	cargo bench --locked

bench-tokens: target/peer/bin/jupyter-mcp-server ## Count what answers cost a model, beside datalayer's server
	JMG_TOKENS_PEER=$(CURDIR)/$< cargo test --locked --test it tokens:: -- --nocapture

target/peer/bin/jupyter-mcp-server:
	python3 -m venv target/peer
	target/peer/bin/pip install --quiet jupyter-mcp-server==2.2.4
