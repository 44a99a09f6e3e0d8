# FastPay's commands. A fresh machine needs Rust, Node, git and a C compiler; everything else comes from the two
# lock files. Each target does its own set-up first, and does again only what is out of date.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

FOUNDRY := node_modules/.bin
# What node_modules was installed from: compared by content, so that a checkout alone installs nothing again.
INSTALLED := node_modules/.installed-from.json
# What writes forge's cache or node_modules runs by this; what only reads them does not.
ONE_AT_A_TIME := script/one-at-a-time.sh
PROGRAMS := -p fastpay-node -p fastpay-relayer -p fastpay-wallet -p fastpay-merchant --bins
CARGO := cargo
# What checks the contract beside Foundry: Slither and Halmos (Python), bulloak (Rust). Only the tests need them.
CHECKERS := target/checkers
PYTHON := python3
BULLOAK := 0.9.2
CARGO_SBOM := 0.10.0

# Each is a module of fuzz/src; so many seconds for each.
FUZZ_TARGETS := wire stored journal configuration files chain http
FUZZ_SECONDS := 60
# 0: another one each time.
FUZZ_SEED := 0

# The tool, what it is for, and where it is from: said before anything fails halfway.
define require
	@command -v $(1) >/dev/null || { echo "FastPay needs $(1) ($(2)). Install it and run make again." >&2; exit 1; }
endef

.PHONY: help setup tools python build release check check-formats test test-all test-rust test-contracts test-nightly test-upgrade demo localnet bench sim clean
.PHONY: fuzz fuzz-briefly test-sdk test-sdk-units sdk-reference
.PHONY: check-api check-deploy check-descriptor
.PHONY: web web-page test-web chromium
.PHONY: walkthrough check-walkthrough
.PHONY: shop test-shop test-scripts model model-full dist
.PHONY: demo-ledger bench-ledger test-ledger test-private
.PHONY: checkers check-contracts check-trees check-slither check-proofs check-proof-mutants check-coverage

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "make %-16s %s\n", $$1, $$2 }'

tools:
	$(call require,cargo,Rust 1.95 or newer: https://rustup.rs)
	$(call require,node,Node.js 20 or newer: https://nodejs.org)
	$(call require,npm,it comes with Node.js)
	$(call require,git,https://git-scm.com)
	$(call require,cc,a C compiler such as gcc: libsecp256k1 is written in C)
	@node -e 'if (parseInt(process.versions.node) < 20) { console.error("FastPay needs Node.js 20 or newer; this is " + process.version + "."); process.exit(1) }'

python:
	$(call require,$(PYTHON),Python 3.11 or newer; the tests are run by it: https://python.org)

# The parts that script/tests/run.py has run: `setup`, `page`. They are not repeated, least of all side by side.
DONE ?=

ifeq ($(filter setup,$(DONE)),)
setup: tools ## Install the pinned Solidity tools and compile the contracts
	@INSTALLED=$(INSTALLED) FOUNDRY=$(FOUNDRY) $(ONE_AT_A_TIME) script/setup.sh
else
setup:
endif

build: setup ## Build the programs for development
	$(CARGO) build $(PROGRAMS)

release: setup ## Build the programs as they are run, into target/release
	$(CARGO) build --release $(PROGRAMS) -p fastpay-e2e

check-formats: setup ## Check formats and names; lints are checked where the tests are built
	$(call require,$(PYTHON),Python 3.11 or newer: https://python.org)
	@script/checkers/names.py
	@script/checkers/abi.py
	@script/mutants.py --check
	$(CARGO) fmt --all --check
	$(FOUNDRY)/forge fmt --check

test-contracts: setup ## Test the contracts
	$(ONE_AT_A_TIME) $(FOUNDRY)/forge test

# The end-to-end tests start the programs that are built beside them.
test-rust: setup ## Test the Rust crates, and all parts together on a real chain
	@script/tests/rust.py run

$(CHECKERS)/bulloak-$(BULLOAK):
	@echo "compiling bulloak $(BULLOAK) from crates.io (one to two minutes, once)"
	@$(CARGO) install --quiet --debug --locked --root $@ --version $(BULLOAK) bulloak || { rm -rf $@; \
		echo "bulloak $(BULLOAK) could not be installed. Is crates.io reachable? Then run make again." >&2; exit 1; }

$(CHECKERS)/python/.installed: script/checkers/requirements.txt
	$(call require,$(PYTHON),Python 3.11 or newer; Slither and Halmos are written in it: https://python.org)
	@echo "installing Slither and Halmos from PyPI (about a minute, once)"
	@$(PYTHON) -m venv --clear $(@D) || { echo "FastPay needs Python's venv (on Debian: python3-venv)." >&2; exit 1; }
	@$(@D)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r $< || { \
		echo "Slither and Halmos could not be installed. Is PyPI (or your mirror of it) reachable? Then run make again." >&2; exit 1; }
	@touch $@

$(CHECKERS)/api/.installed: script/checkers/api/requirements.txt
	$(call require,$(PYTHON),Python 3.11 or newer; Schemathesis is written in it: https://python.org)
	@echo "installing Schemathesis from PyPI (half a minute, once)"
	@$(PYTHON) -m venv --clear $(@D) || { echo "FastPay needs Python's venv (on Debian: python3-venv)." >&2; exit 1; }
	@$(@D)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r $< || { \
		echo "Schemathesis could not be installed. Is PyPI (or your mirror of it) reachable? Then run make again." >&2; exit 1; }
	@touch $@

$(CHECKERS)/deploy/.installed: script/checkers/deploy/requirements.txt
	$(call require,$(PYTHON),Python 3.11 or newer; the check of deploy/ is written in it: https://python.org)
	@echo "installing parsers of PromQL and YAML from PyPI (a few seconds, once)"
	@$(PYTHON) -m venv --clear $(@D) || { echo "FastPay needs Python's venv (on Debian: python3-venv)." >&2; exit 1; }
	@$(@D)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r $< || { \
		echo "The parsers could not be installed. Is PyPI (or your mirror of it) reachable? Then run make again." >&2; exit 1; }
	@touch $@

# The linter states Python 3.12; what it needs of that, its check supplies.
$(CHECKERS)/descriptor/.installed: script/checkers/descriptor/requirements.txt
	$(call require,$(PYTHON),Python 3.11 or newer; the linter of ERC-7730 is written in it: https://python.org)
	@echo "installing the linter of ERC-7730 from PyPI (half a minute, once)"
	@$(PYTHON) -m venv --clear $(@D) || { echo "FastPay needs Python's venv (on Debian: python3-venv)." >&2; exit 1; }
	@$(@D)/bin/pip install --quiet --disable-pip-version-check --ignore-requires-python --require-hashes -r $< || { \
		echo "The linter of ERC-7730 could not be installed. Is PyPI (or your mirror of it) reachable? Then run make again." >&2; exit 1; }
	@touch $@

checkers: $(CHECKERS)/bulloak-$(BULLOAK) $(CHECKERS)/python/.installed $(CHECKERS)/api/.installed $(CHECKERS)/deploy/.installed $(CHECKERS)/descriptor/.installed

check-trees: $(CHECKERS)/bulloak-$(BULLOAK)
	@echo "bulloak: every branch in test/trees/*.tree has its test, and every test its branch"
	@$</bin/bulloak check --skip-modifiers test/trees/*.tree

check-slither: setup $(CHECKERS)/python/.installed
	@echo "Slither: no finding without an explanation (docs/VERIFICATION.md)"
	@PATH="$(CURDIR)/$(FOUNDRY):$$PATH" FOUNDRY_PROFILE=slither $(ONE_AT_A_TIME) \
		$(CHECKERS)/python/bin/slither . --config-file slither.config.json

check-proofs: setup $(CHECKERS)/python/.installed
	@echo "Halmos: the proofs in test/halmos"
	@PATH="$(CURDIR)/$(FOUNDRY):$(CURDIR)/$(CHECKERS)/python/bin:$$PATH" FOUNDRY_PROFILE=halmos \
		$(ONE_AT_A_TIME) $(CHECKERS)/python/bin/python script/checkers/prove.py

check-proof-mutants: setup $(CHECKERS)/python/.installed
	@echo "Halmos: each proof fails for a contract without the check that it is about"
	@PATH="$(CURDIR)/$(FOUNDRY):$(CURDIR)/$(CHECKERS)/python/bin:$$PATH" FOUNDRY_PROFILE=halmos \
		$(ONE_AT_A_TIME) $(CHECKERS)/python/bin/python script/checkers/mutants.py

check-coverage: setup
	@echo "coverage: the tests of the trees reach every line and branch of contracts/"
	@$(ONE_AT_A_TIME) script/checkers/coverage.py

check-contracts: check-trees check-coverage check-slither check-proofs ## Check the contract with bulloak, coverage, Slither and Halmos

# The programs are those that the tests use: the same packages and features.
check-api: setup $(CHECKERS)/api/.installed ## Send a live node and merchant what their OpenAPI documents say, and what they do not (60 s)
	@script/tests/rust.py build
	@$(CHECKERS)/api/bin/python script/checkers/api/check.py target/debug

test-sdk: web-page ## Build and test the TypeScript SDK, also against a live network (a minute)
	@script/tests/rust.py build
	@npm run --silent --workspace sdk check
	@npm run --silent --workspace script/sdk-reference check
	@npm run --silent --workspace sdk test

sdk-reference: setup ## Write the SDK's reference into sdk/reference; `npm pack -w sdk` puts it into the package
	@npm run --silent --workspace script/sdk-reference build

test-sdk-units: setup
	@npm run --silent --workspace sdk build
	@npm run --silent --workspace sdk check
	@npm run --silent --workspace script/sdk-reference check
	@npm run --silent --workspace sdk test -- --exclude 'test/live/**'

check-deploy: setup $(CHECKERS)/deploy/.installed ## Check the files of deploy/ against what the programs serve
	@script/tests/rust.py build
	@$(CHECKERS)/deploy/bin/python script/checkers/deploy/check.py target/debug

check-descriptor: $(CHECKERS)/descriptor/.installed ## Check how wallets are told to show orders (docs/erc7730)
	@$(CHECKERS)/descriptor/bin/python script/checkers/descriptor/check.py

# Coverage-guided, with the stable compiler: our own crates are compiled once more, with counters, and those of others
# are the ones of the tests. So the choice of packages and features is that of the tests, too.
fuzz: tools ## Fuzz every decoder, each for FUZZ_SECONDS (60)
	$(call require,c++,a C++ compiler such as g++: libFuzzer is written in C++)
	@export RUSTC_WORKSPACE_WRAPPER=$(CURDIR)/fuzz/instrument; \
	cargo="$(CARGO) test --quiet --workspace --features fastpay-fuzz/engine"; \
	$$cargo --no-run --bin 'fuzz-*'; \
	for target in $(FUZZ_TARGETS); do \
		echo "fuzzing $$target for $(FUZZ_SECONDS) s"; \
		corpus=$(CURDIR)/target/fuzz/$$target; found=$(CURDIR)/target/fuzz/found-in-$$target-; mkdir -p $$corpus; \
		$$cargo --bin fuzz-$$target -- -max_total_time=$(FUZZ_SECONDS) -max_len=8192 -timeout=60 -rss_limit_mb=2048 -seed=$(FUZZ_SEED) \
			-reload=0 -verbosity=0 -print_final_stats=1 -artifact_prefix=$$found $$corpus 2>$$corpus.log || { \
			cat $$corpus.log >&2; echo "keep $$found* in fuzz/regressions/$$target/" >&2; exit 1; }; \
		sed -n 's/^stat::number_of_executed_units: */  inputs: /p' $$corpus.log; \
	done

# The same inputs each time, as far as the machine is as fast: what is found by chance is for `make fuzz`.
fuzz-briefly:
	@$(MAKE) fuzz FUZZ_SECONDS=5 FUZZ_SEED=1

# What they consist of, and how long each part may take: script/tests/parts.toml.
check: tools python ## Run what one runs before each commit (two minutes)
	@script/tests/run.py check

test: tools python ## Run what every change must pass
	@script/tests/run.py test

test-all: tools python ## Run everything: also proofs, coverage, fuzzing, simulation
	@script/tests/run.py all

test-upgrade: tools ## Replace authorities of PREVIOUS=REVISION by this one's, one at a time under load (10 minutes)
	@test -n "$(PREVIOUS)" || { echo "say which revision: make test-upgrade PREVIOUS=v1.0.0" >&2; exit 1; }
	rm -rf target/previous && mkdir -p target/previous && git archive "$(PREVIOUS)" | tar -x -C target/previous
	cd target/previous && $(CARGO) build -p fastpay-node --target-dir ../previous-build
	# As script/tests/rust.py compiles it, so that this test is built once.
	FASTPAY_PREVIOUS_NODE="$(CURDIR)/target/previous-build/debug/fastpay-node" RUSTC_WORKSPACE_WRAPPER=clippy-driver \
		CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__ \
		$(CARGO) test --workspace --test e2e one_at_a_time_under_load

test-nightly: check-proof-mutants ## Fuzz and vary for hours, and show that the proofs can fail
	FOUNDRY_PROFILE=nightly $(ONE_AT_A_TIME) $(FOUNDRY)/forge test
	DIFFERENTIAL_CASES=5000 $(CARGO) test -p fastpay-core --test core differential -- --nocapture

demo: release ## Show the whole way: deposit, pay, lose an authority, redeem, audit
	@target/release/fastpay-demo

# A workspace of its own, because of the engine: some 400 crates. Clippy is the compiler, so that our own is compiled once.
LEDGER := cd ledger/member && RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__ $(CARGO)

demo-ledger: build ## Show a ledger and FastPay on it: fund, pay, redeem, rotate, kill a leader and a cluster, catch a liar, audit
	@$(LEDGER) build --locked --features testing --bins
	@ledger/member/target/debug/fastpay-ledger-demo

bench-ledger: tools ## Measure the ledger: operations per second and processor time at a few shapes (5 minutes); LEDGER_BENCH=--quick for a look
	@cd ledger/member && $(CARGO) build --release --locked --features testing --bins
	@ledger/member/target/release/fastpay-ledger-bench $(LEDGER_BENCH)

test-ledger: web-page chromium ## Test the ledger as clusters of processes, and the SDK and the web wallet on it
	@cd ledger/member && $(CARGO) fmt --check
	@$(LEDGER) test --locked --features testing -- --test-threads 1
	@script/tests/rust.py build
	@npm run --silent --workspace sdk test:ledger
	@CHROMIUM="$$($(BROWSER))" npm run --silent --workspace web test:ledger

# A workspace of its own, because of the prover's pinned crates.
test-private: tools ## Test the circuit, prover and key ceremony of private payments
	@cd private-prover && $(CARGO) fmt --all --check
	@cd private-prover && RUSTC_WORKSPACE_WRAPPER=clippy-driver \
		CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__ $(CARGO) test --locked

localnet: release ## Start the same network and leave it running until Ctrl-C
	@script/until-interrupted.sh target/release/fastpay-localnet

# The page, as it is hosted: static files in web/dist.
ifeq ($(filter page,$(DONE)),)
web-page: setup
	@npm run --silent build -w sdk && npm run --silent build -w web -- --logLevel warn
else
web-page:
endif

web: release web-page ## Serve the web wallet on a localnet of its own, until Ctrl-C
	@script/until-interrupted.sh script/web.sh

# Chromium without a window is enough, and faster by a quarter; the whole one does, too.
BROWSER = { if [ -n "$${CHROMIUM:-}" ]; then command -v "$$CHROMIUM"; else command -v chromium-headless-shell || command -v chromium; fi; }

chromium:
	@$(BROWSER) >/dev/null || { \
		[ -z "$${CHROMIUM:-}" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		echo "installing Chromium with apt-get, to test the web wallet in" && apt-get update -qq && \
		{ DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium-headless-shell >/dev/null || \
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; }; } || { \
		echo "The web wallet is tested in Chromium. Install it, or say where it is: CHROMIUM=/path/to/it" >&2; exit 1; }

# A project of web/playwright.config.ts (`money`, `rest`); nothing: all. Each run has a network of its own.
PROJECT :=

# The programs are those that the tests use: the same packages and features.
test-web: web-page chromium ## Test the web wallet in Chromium on a localnet; pictures are kept in target/web
	@script/tests/rust.py build
	@CHROMIUM="$$($(BROWSER))" npm run --silent test -w web -- $(if $(PROJECT),--project $(PROJECT) --output ../target/web/failures-$(PROJECT))

walkthrough: release web-page chromium ## Record docs/WALKTHROUGH.md and its pictures from real runs (two minutes)
	@CHROMIUM="$$($(BROWSER))" $(PYTHON) script/walkthrough/walkthrough.py target/release

check-walkthrough: setup ## Check that commands print what docs/WALKTHROUGH.md shows (half a minute)
	@script/tests/rust.py build
	@$(PYTHON) script/walkthrough/walkthrough.py --check target/debug

shop: release web-page ## Serve the sample shop, fastpay-merchant and the web wallet on a localnet of their own, until Ctrl-C
	@script/until-interrupted.sh script/shop.sh

test-scripts: python ## Test what packs a release, ends at Ctrl-C, and keeps forge to one at a time (seconds)
	@$(PYTHON) script/tests/scripts.py

# In a browser it is tested by test-web (web/test/shop.spec.ts).
test-shop: setup ## Test the sample shop's orders and its verification of webhooks
	@npm run --silent test -w merchant/shop

# A workspace of its own: nothing else needs what it is built with.
model: ## Check the formal model of unlocking, and that each rule is needed (five minutes)
	@cd model && $(CARGO) test --release -- --nocapture --test-threads=1

model-full: ## Check the model in all its settings (long; the largest have tens of millions of states)
	@cd model && $(CARGO) run --release -- --full --threads 2

# For development, so that what would overflow is seen; signatures are checked with optimised code all the same.
sim: setup ## Simulate the system under faults (minutes); SEEDS=0..500 or HOURS=9 explores; SEED=7 TRACE=1 shows one run
	$(call require,$(PYTHON),Python 3.11 or newer: https://python.org)
	@$(if $(MUTANT),,script/tests/rust.py sim && target/debug/sim $(if $(SEED),--seed $(SEED)) \
		$(if $(TRACE),--trace) $(if $(PLAN),--plan '$(PLAN)') $(if $(SEEDS),--seeds $(SEEDS)) $(if $(HOURS),--hours $(HOURS)))
	@$(if $(SEED)$(SEEDS)$(HOURS),,script/mutants.py $(MUTANT))

bench: release ## Measure speed, all of it (8 minutes); BENCH=--quick for a look, BENCH=--help for parts of it
	@target/release/fastpay-bench $(BENCH)

$(CHECKERS)/cargo-sbom-$(CARGO_SBOM):
	@echo "compiling cargo-sbom $(CARGO_SBOM) from crates.io (two minutes, once)"
	@$(CARGO) install --quiet --debug --locked --root $@ --version $(CARGO_SBOM) cargo-sbom || { rm -rf $@; \
		echo "cargo-sbom $(CARGO_SBOM) could not be installed. Is crates.io reachable? Then run make again." >&2; exit 1; }

dist: release web-page $(CHECKERS)/cargo-sbom-$(CARGO_SBOM) ## Pack a release into dist/: stripped programs, symbols, web wallet, bill of materials, checksums
	$(call require,objcopy,binutils: it comes with a C compiler)
	@script/dist.sh $(CHECKERS)/cargo-sbom-$(CARGO_SBOM)/bin/cargo-sbom

clean: ## Remove what was built and installed
	rm -rf target out cache broadcast dist node_modules sdk/dist web/dist
