# Everything a newcomer, a developer or CI needs. Prerequisites: Rust and Python 3, nothing else.

NOTEBOOKS ?= notebooks

.PHONY: help run test lint fmt bench

help: ## Show what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## Start the gateway with a JupyterLab of its own on ./notebooks
	cargo run --release --locked -- serve --with-jupyter $(NOTEBOOKS)

test: lint ## Run every check that CI runs, set-up included
	cargo test --locked

lint: ## Check formatting, lints and docs
	cargo fmt --check
	cargo clippy --locked --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps --quiet

fmt: ## Format the code
	cargo fmt

bench: ## Measure the gateway beside a bare rmcp server
	cargo bench --locked
