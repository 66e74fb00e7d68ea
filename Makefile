# Everything a newcomer, a developer or CI needs. Prerequisites: Rust and Python 3, nothing else.

NOTEBOOKS ?= notebooks
# Older versions of jupyter-collaboration, as listed in tests/compat.
VERSIONS ?= 4.4 3.1

.PHONY: help run test test-compat lint fmt docs bench

help: ## Show what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## Start the gateway with a JupyterLab of its own on ./notebooks
	cargo run --release --locked -- serve --with-jupyter $(NOTEBOOKS)

test: lint ## Run every check that CI runs, set-up included
	cargo test --locked

test-compat: ## Run the tests of live documents against older versions of jupyter-collaboration
	for version in $(VERSIONS); do JMG_TEST_COLLABORATION=$$version cargo test --locked --test it rooms || exit 1; done

lint: ## Check formatting, lints and docs
	cargo fmt --check
	cargo clippy --locked --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps --quiet

fmt: ## Format the code
	cargo fmt

docs: ## Write the page with every tool, src/tools/README.md
	cargo run --quiet --locked -- tools --toolsets all --markdown > src/tools/README.tmp
	mv src/tools/README.tmp src/tools/README.md

bench: ## Measure the gateway beside bare servers and clients
	cargo bench --locked
