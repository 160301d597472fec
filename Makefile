# For people: each target is one thing to type. The build itself is CMake's (CMakePresets.json).
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

JOBS ?= $(shell nproc)
PYTHON_ENV := .venv/bin/python
export CMAKE_C_COMPILER_LAUNCHER ?= $(shell command -v ccache)
export CMAKE_CXX_COMPILER_LAUNCHER ?= $(CMAKE_C_COMPILER_LAUNCHER)
SOURCES = $(shell git ls-files --cached --others --exclude-standard '*.c' '*.h' '*.inc' '*.cc' '*.cu' | grep -vE '^(gen|include/proa/ops)/')

.PHONY: help bootstrap build demo test test-gpu docs bench wheel coverage fuzz dist-test kill-test soak format tidy check lock clean bench-gpu

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

bootstrap: ## install what is missing
	@tools/bootstrap

build: bootstrap ## build the release preset into build/
	@tools/build release

demo: bootstrap ## train on digits, export for Paddle, reload, predict: build/demo/
	@tools/build release digits_cnn load_and_predict char_transformer
	@tools/demo

test: ## everything that must hold before a change is merged (about 10 minutes)
	@tools/bootstrap --oracle
	@tools/build release
	@tools/test

wheel: build ## a wheel for other machines, tried in a clean environment: build/wheel/
	@tests/package/wheel

coverage: build ## compare with real Paddle, raise the floor of covered names, write docs/migration.md
	@tools/bootstrap --oracle
	@$(PYTHON_ENV) -m pytest -q -n 2 tests/parity
	@$(PYTHON_ENV) tools/api_coverage.py --raise-floor

docs: build ## the reference site: build/docs/html; its links, search and pages are tried
	@tools/bootstrap --docs
	@.venv-docs/bin/python docs/site/build.py
	@.venv-docs/bin/python docs/site/check.py

bench: build ## against Paddle, PyTorch and the machine (half an hour; FAMILY=kernels ROUNDS=3 ARGS="--only softmax")
	@tools/bootstrap --bench
	@$(PYTHON_ENV) benchmarks/run.py $(FAMILY) --rounds $(or $(ROUNDS),5) $(ARGS)

bench-gpu: ## on this machine's GPU, against PyTorch there (ten minutes; ARGS="--only product")
	@tools/build cuda
	@tools/bootstrap --bench
	@PROA_BUILD=build-cuda $(PYTHON_ENV) benchmarks/gpu.py $(ARGS)

fuzz: build ## feed the file readers and the planner with adversarial bytes (long)
	@tools/bootstrap --ci
	@tools/build fuzz
	@tools/fuzz

dist-test: build ## data and hybrid parallelism are one process, at 1 to 8 ranks; random collectives: a sample (ARGS=--all: every case, long)
	@tools/long_tests ranks $(ARGS)

kill-test: build ## kill -9 a training program again and again; it must resume bit for bit (long)
	@tools/long_tests kill

soak: build ## many runs over many shapes; memory must stay flat (long)
	@tools/long_tests soak

format: bootstrap ## lay out the C files
	@clang-format -i $(SOURCES)

tidy: build ## clang-tidy over all C files: bugs that the compiler does not see
	@mkdir -p build/tidy && sed -E 's/ -f(no-)?thread-jumps//g' build/compile_commands.json >build/tidy/compile_commands.json # GCC's alone
	@git ls-files '*.c' | grep -vE '^(tests|examples|benchmarks|devices|inference/java)/|^gen/' | \
		xargs -P$(JOBS) -n8 clang-tidy -p build/tidy --quiet --extra-arg=-w 2>/dev/null && echo "tidy: ok"

check: bootstrap ## layout, layering by includes and symbols, sizes, lock file, headers
	@clang-format --dry-run -Werror $(SOURCES) && echo "format: ok"
	@.venv/bin/ruff check -q . && echo "ruff: ok"
	@$(PYTHON_ENV) tools/check_layers.py
	@if [ -d build/CMakeFiles ]; then $(PYTHON_ENV) tools/check_symbols.py build; else echo "symbols: nothing is built"; fi
	@$(PYTHON_ENV) tools/check_sizes.py
	@$(PYTHON_ENV) tools/check_lock.py
	@$(PYTHON_ENV) tools/check_counts.py
	@$(PYTHON_ENV) tools/check_commits.py
	@$(PYTHON_ENV) tools/api_coverage.py --check
	@$(PYTHON_ENV) tools/check_headers.py

test-gpu: ## on a machine with a GPU and nvcc: the minimal build with CUDA, and the matrix on gpu:0
	@PROA_GPU=1 tools/cuda

lock: bootstrap ## write ops/ops.lock and include/proa/ops* anew from the op tables
	@$(PYTHON_ENV) tools/gen_ops.py --table ops/table.yaml --out build/gen --headers include/proa --lock ops/ops.lock ops/*/*.yaml jit/*/*.yaml

clean: ## remove everything that was built
	rm -rf build build-asan build-tsan build-debug build-minimal build-arm64 build-fuzz build-cuda
