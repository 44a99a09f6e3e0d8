# FastPay's commands. A fresh machine needs Rust, Node, git and a C compiler; everything else comes from the two
# lock files. Each target does its own set-up first, and does again only what is out of date.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

FOUNDRY := node_modules/.bin
# What node_modules was installed from: compared by content, so that a checkout alone installs nothing again.
INSTALLED := node_modules/.installed-from.json
PROGRAMS := -p fastpay-node -p fastpay-relayer -p fastpay-wallet --bins
CARGO := cargo

# The tool, what it is for, and where it is from: said before anything fails halfway.
define require
	@command -v $(1) >/dev/null || { echo "FastPay needs $(1) ($(2)). Install it and run make again." >&2; exit 1; }
endef

.PHONY: help setup tools build release lint test test-rust test-contracts demo localnet bench clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "make %-16s %s\n", $$1, $$2 }'

tools:
	$(call require,cargo,Rust 1.95 or newer: https://rustup.rs)
	$(call require,node,Node.js 20 or newer: https://nodejs.org)
	$(call require,npm,it comes with Node.js)
	$(call require,git,https://git-scm.com)
	$(call require,cc,a C compiler such as gcc: libsecp256k1 is written in C)
	@node -e 'if (parseInt(process.versions.node) < 20) { console.error("FastPay needs Node.js 20 or newer; this is " + process.version + "."); process.exit(1) }'

setup: tools ## Install the pinned Solidity tools and compile the contracts
	@cmp -s package-lock.json $(INSTALLED) || { \
		echo "installing the Solidity tools of package-lock.json"; \
		npm ci --ignore-scripts --no-audit --no-fund --loglevel=error && cp package-lock.json $(INSTALLED); }
	@$(FOUNDRY)/forge build
	@# A partial compilation (such as `forge build contracts`) leaves others without code; forge then takes them as done.
	@for name in FastPay.sol/FastPay Deploy.s.sol/Deploy DeployDemoToken.s.sol/DeployDemoToken; do \
		grep -q '"bytecode"' out/$$name.json || { $(FOUNDRY)/forge build --force; break; }; done

build: setup ## Build the programs for development
	$(CARGO) build $(PROGRAMS)

release: setup
	$(CARGO) build --release $(PROGRAMS) -p fastpay-e2e

lint: setup ## Check formats and lints; warnings are errors
	$(CARGO) fmt --all --check
	$(FOUNDRY)/forge fmt --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings

test-contracts: setup ## Test the contracts
	$(FOUNDRY)/forge test

# Cargo builds the programs beside the tests, so the end-to-end tests need not build them (once more, with fewer
# features): the word to them is in the environment.
test-rust: setup ## Test the Rust crates, and all parts together on a real chain
	PROGRAMS_ARE_BUILT=1 $(CARGO) test --workspace --lib --bins --tests

test: lint test-contracts test-rust ## Run all checks and all tests

demo: release ## Show the whole way: deposit, pay, lose an authority, redeem, audit
	@target/release/fastpay-demo

localnet: release ## Start the same network and leave it running until Ctrl-C
	@target/release/fastpay-localnet

bench: release ## Measure payments per second and latency
	@target/release/fastpay-bench

clean: ## Remove what was built and installed
	rm -rf target out cache broadcast node_modules
