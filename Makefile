# Everything a person does here. `make help` lists it; .ci/run calls the same targets.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PREFIX ?= /usr/local
DESTDIR ?=
# For `make test`: arguments of ctest, for instance ARGS='-L unit' or ARGS='-R front'.
ARGS ?=

.PHONY: help setup build demo test quick lint generate verify-generate tsan bench nightly peers install clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install the Debian packages that are missing (as root or by sudo)
	@scripts/setup.sh build test lint

build: ## Build the product: build/release/lockkeeper
	@scripts/setup.sh build
	@scripts/build.sh release

demo: ## Roll live servers under load, with kubectl, and print what it cost
	@scripts/setup.sh build
	@scripts/demo.sh

test: ## Build and run all tests, under ASan and UBSan; ARGS='-R front' picks some
	@scripts/setup.sh test
	@scripts/test.sh --preset dev $(ARGS)

quick: ## The same without sanitizers, for the inner loop
	@scripts/setup.sh test
	@scripts/test.sh --preset quick $(ARGS)

tsan: ## The tests of the runtime and the front under ThreadSanitizer
	@scripts/setup.sh test
	@scripts/test.sh --preset tsan --target lk_tsan_tests -L tsan $(ARGS)

lint: ## Every gate: format, layers, lengths, headers, thread safety, clang-tidy on the change
	@scripts/setup.sh lint
	@scripts/gates.sh
	@scripts/build.sh clang all check_headers
	@scripts/tidy.sh

generate: ## Write crd/ and the reference pages from the types
	@scripts/setup.sh build
	@scripts/generate.sh

verify-generate: generate ## Fail when that changed anything
	@scripts/clean_tree.sh crd docs/reference

bench: ## The benchmarks
	@scripts/setup.sh bench
	@scripts/bench.sh

nightly: ## Kill everything at every step, the long benchmarks, the peers
	@scripts/setup.sh test bench
	@scripts/nightly.sh

peers: ## Build a real kube-apiserver, etcd and client-go programs for the peer tests
	@scripts/peers.sh

install: build ## Install below PREFIX (default /usr/local), staged in DESTDIR
	@DESTDIR='$(DESTDIR)' cmake --install build/release --prefix '$(PREFIX)'

clean: ## Remove the build folder
	@rm -rf build
