# Everything a developer or CI runs, one target each. PYTHON=python3.13 picks another interpreter; each version has its
# own environment under .venv/. Nothing needs to be installed before but Python with headers, a C++ compiler and make.
PYTHON ?= python3
VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
ENV := .venv/$(VERSION)
BIN := $(ENV)/bin
PIP := -m pip --disable-pip-version-check -q
BUILD_NEEDS := "scikit-build-core>=0.11" "cmake>=3.26" "ninja>=1.11"
TORCH ?= torch==2.13.0
SQLGLOT := sqlglot==30.30.0
# Where ccache is, sources that several builds have in common are compiled once.
ifneq ($(shell command -v ccache),)
export CMAKE_CXX_COMPILER_LAUNCHER := ccache
endif
# What takes minutes is repeated less often on the others: how often is no matter of the version.
FEWER := --kills 20 --forks 20 --toggles 100 --programs 60 --steps 5000 --pool-rounds 10000 --mutations 500 --captures 20000

# Under a sanitizer: what reaches into native code in ways of its own. Formats, pages and the command line do not.
PROMISES := $(wildcard tests/promises/test_*.py)
SANITIZED := $(sort tests/native $(filter-out %follow.py %run_programs.py %reading_behaviours.py %hidden_frames.py,$(PROMISES)) $(wildcard tests/unit/test_*call*.py tests/unit/test_generated*.py tests/unit/test_handle*.py \
  tests/unit/test_memory*.py tests/unit/test_random_*.py tests/unit/test_rec*.py) tests/unit/test_events.py tests/unit/test_export_agrees.py \
  tests/unit/test_export_timeline.py tests/unit/test_elf.py tests/unit/test_line_tables.py tests/unit/test_merge.py tests/unit/test_pools.py tests/unit/test_stack.py tests/unit/test_symbols.py tests/unit/test_tags.py)
# On other versions, and with the public frame walk: what depends on how code is run and memory taken.
VERSIONED := $(sort $(filter-out %damaged_recordings.py %damaged_merged.py %reading_behaviours.py %faults.py %kill.py %totals.py,$(PROMISES)) tests/native/test_c_api.py $(wildcard tests/unit/test_*call*.py tests/unit/test_generated*.py tests/unit/test_handle*.py \
  tests/unit/test_memory*.py tests/unit/test_random_*.py tests/unit/test_rec*.py tests/unit/test_run*.py) tests/unit/test_asyncio_tasks.py tests/unit/test_events.py \
  tests/unit/test_example_arrays.py tests/unit/test_example_templates.py tests/unit/test_lowered_errors.py tests/unit/test_native_recordings.py tests/unit/test_native_stacks.py tests/unit/test_pools.py tests/unit/test_providers.py \
  tests/unit/test_stack.py tests/unit/test_state_slot.py tests/unit/test_tracers.py)

# $(call ready,ENV,EXTRAS,BUILD OPTIONS): an environment with whence built from this tree. Building again is quick.
define ready
	@test -x $(1)/bin/python || $(PYTHON) -m venv $(1)
	@test -e $(1)/build-needs || { $(1)/bin/python $(PIP) install $(BUILD_NEEDS) && touch $(1)/build-needs; }
	@PATH="$(CURDIR)/$(1)/bin:$$PATH" $(1)/bin/python $(PIP) install --no-build-isolation $(3) ".$(if $(2),[$(2)])"
endef

.PHONY: help demo test ccache checkers packages test-torch promises test-all test-others check format sanitize races aarch64 fuzz bench clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile

demo:  ## build whence, run the example and show what it captured
	$(call ready,$(ENV),)
	$(BIN)/python examples/where.py

test:  ## build whence and run every test; those that depend on frames also with the public frame walk
	$(call ready,$(ENV),test)
	$(BIN)/python -m pytest -q -m "not packages and not torch" --durations 12
	WHENCE_FRAMES=public $(BIN)/python -m pytest -q -m "not packaging and not packages and not torch and not native and not store" $(FEWER) $(VERSIONED)

ccache:  ## install ccache, which all other targets use where it is: most of their time is that of the compiler
	tools/install-ccache

checkers:  ## install the tools and schemas that exported files are checked with, as far as they can be had
	tools/install-format-checkers

packages:  ## the suites of other packages, recorded, alone and together with other tools: some minutes
	$(call ready,$(ENV),test)
	$(BIN)/python -m pytest -q -m packages

# The version of PyTorch that is pinned is installed for 3.11 alone, as for the benchmarks.
test-torch:  ## the tests that need PyTorch, which it installs: on CPython 3.11 only, a minute or two
	@test $(VERSION) = 3.11 || { echo "test-torch is for CPython 3.11: PYTHON=python3.11 make test-torch"; exit 1; }
	$(call ready,$(ENV),test)
	@$(BIN)/python $(PIP) install "$(TORCH)" numpy
	$(BIN)/python -m pytest -q -m torch --durations 5

promises:  ## the promises about crashes and forks at length: 2,000 kills, 1,000 forks, 1,000 toggles, a million blocks, 20,000 programs, 100,000 tables, ten million native stacks
	$(call ready,$(ENV),test)
	$(BIN)/python -m pytest -q tests/promises tests/unit/test_random_programs.py tests/unit/test_handle_files.py --mutations 100000 --kills 2000 --forks 1000 --toggles 1000 --pool-rounds 1000000 --steps 1000000 --programs 20000 --captures 10000000

test-others:  ## what may differ with the interpreter, on every other CPython from 3.11 to 3.15 found on the machine
	@for python in $$($(PYTHON) tools/find_pythons.py --except $(VERSION)); do \
	  echo "== $$python"; $(MAKE) --no-print-directory test-fast-walk PYTHON=$$python || exit 1; done

.PHONY: test-fast-walk
test-fast-walk:
	$(call ready,$(ENV),test)
	$(BIN)/python -m pytest -q -m "not packaging and not packages and not torch and not store" $(FEWER) $(VERSIONED)

test-all:  ## every test on every CPython from 3.11 to 3.15 found on the machine
	@for python in $$($(PYTHON) tools/find_pythons.py); do \
	  echo "== $$python"; $(MAKE) --no-print-directory test PYTHON=$$python || exit 1; done

check:  ## formatting, lint, types, the stub of the native core, the layers
	$(call ready,$(ENV),check)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	git ls-files '*.cpp' '*.h' | xargs $(BIN)/clang-format --dry-run --Werror
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest whence._core whence._events whence._frame whence._statistics --ignore-disjoint-bases
	$(BIN)/python tools/check_layers.py

format:  ## bring the sources into the form that `make check` wants
	$(call ready,$(ENV),check)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix-only .
	git ls-files '*.cpp' '*.h' | xargs $(BIN)/clang-format -i

sanitize:  ## the tests of native code with AddressSanitizer, UndefinedBehaviorSanitizer and lock-rank checks
	$(call ready,$(ENV)-sanitize,test,-C cmake.define.WHENCE_SANITIZE=ON -C build-dir=build/sanitize-$(VERSION))
	LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc WHENCE_SANITIZED=1 \
	$(ENV)-sanitize/bin/python -m pytest -q -m "not packaging and not packages and not torch" --durations 12 $(FEWER) $(SANITIZED)

races:  ## the native tests with ThreadSanitizer
	$(call ready,$(ENV),)
	PATH="$(CURDIR)/$(BIN):$$PATH" cmake -S . -B build/races -G Ninja -DWHENCE_NATIVE_TESTS=ON -DWHENCE_RACES=ON \
	  -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python >/dev/null
	PATH="$(CURDIR)/$(BIN):$$PATH" cmake --build build/races --target native_tests
	setarch -R build/races/native_tests

EMULATE := qemu-aarch64 -L /usr/aarch64-linux-gnu
# Those that know no Python.
LAYERS := base elf format handles read store unwind

aarch64:  ## build the native layers for aarch64, and run their tests and a small storm in an emulator
	$(call ready,$(ENV),)
	tools/install-aarch64
	PATH="$(CURDIR)/$(BIN):$$PATH" cmake -S . -B build/aarch64 -G Ninja -DWHENCE_NATIVE_TESTS=ON -DWHENCE_CHECKED=ON \
	  -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ \
	  -DCMAKE_CXX_FLAGS=-mbranch-protection=standard -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python >/dev/null
	PATH="$(CURDIR)/$(BIN):$$PATH" cmake --build build/aarch64 --target native_tests storm $(LAYERS:%=whence_%)
	$(EMULATE) build/aarch64/native_tests
	$(EMULATE) build/aarch64/storm 50000 $$$$ build/aarch64/libvisited1.so build/aarch64/libvisited2.so

FUZZ_SECONDS ?= 20

fuzz:  ## run the fuzz targets under sanitizers: recordings for a minute, the others for 20 s
	$(call ready,$(ENV),)
	tools/install-clang
	PATH="$(CURDIR)/$(BIN):$$PATH" cmake -S . -B build/fuzz -G Ninja -DWHENCE_FUZZ=ON -DCMAKE_CXX_COMPILER=clang++-19 \
	  -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python
	PATH="$(CURDIR)/$(BIN):$$PATH" cmake --build build/fuzz
	mkdir -p build/fuzz/corpus && cp tests/data/*.whence build/fuzz/corpus/
	build/fuzz/fuzz_recording -max_total_time=60 -max_len=65536 -rss_limit_mb=1024 -timeout=10 -verbosity=0 -print_final_stats=1 \
	  build/fuzz/corpus
	mkdir -p build/fuzz/elf && echo 'int f(int a) { return a; }' | $(CXX) -x c++ -g -shared -fPIC - -o build/fuzz/elf/small.so
	build/fuzz/fuzz_elf -max_total_time=$(FUZZ_SECONDS) -max_len=32768 -rss_limit_mb=1024 -timeout=10 -verbosity=0 -print_final_stats=1 build/fuzz/elf
	for target in handles line_table mangled text; do \
	  build/fuzz/fuzz_$$target -max_total_time=$(FUZZ_SECONDS) -verbosity=0 -print_final_stats=1 || exit 1; done

bench:  ## side-by-side benchmarks on every CPython found; TORCH= leaves PyTorch out
	@for python in $$($(PYTHON) tools/find_pythons.py); do \
	  $(MAKE) --no-print-directory bench-one PYTHON=$$python || exit 1; done

.PHONY: bench-one
bench-one:
	$(call ready,$(ENV)-bench,)
	@case "$(VERSION)$(TORCH)" in 3.11?*) $(ENV)-bench/bin/python $(PIP) install "$(TORCH)" numpy;; esac
	@$(ENV)-bench/bin/python $(PIP) install "viztracer>=1" "memray>=1.13" "$(SQLGLOT)"
	@PATH="$(CURDIR)/$(ENV)-bench/bin:$$PATH" cmake -S . -B build/bench-$(VERSION) -G Ninja -DWHENCE_BENCHMARKS=ON \
	  -DPython_EXECUTABLE="$(CURDIR)/$(ENV)-bench/bin/python" >/dev/null
	@PATH="$(CURDIR)/$(ENV)-bench/bin:$$PATH" cmake --build build/bench-$(VERSION) --target bench_write >/dev/null
	$(ENV)-bench/bin/python bench/record.py build/bench-$(VERSION)/bench_write
	$(ENV)-bench/bin/python bench/capture.py
	$(ENV)-bench/bin/python bench/instructions.py
	$(ENV)-bench/bin/python bench/calls.py
	$(ENV)-bench/bin/python bench/read.py
	$(ENV)-bench/bin/python bench/memory.py
	$(ENV)-bench/bin/python bench/native.py
	$(ENV)-bench/bin/python bench/handles.py

clean:  ## remove everything that was built, the environments too
	rm -rf build dist .venv .mypy_cache .ruff_cache .pytest_cache
