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

# $(call ready,ENV,EXTRAS,BUILD OPTIONS): an environment with whence built from this tree. Building again is quick.
define ready
	@test -x $(1)/bin/python || $(PYTHON) -m venv $(1)
	@test -e $(1)/build-needs || { $(1)/bin/python $(PIP) install $(BUILD_NEEDS) && touch $(1)/build-needs; }
	@PATH="$(CURDIR)/$(1)/bin:$$PATH" $(1)/bin/python $(PIP) install --no-build-isolation $(3) ".$(if $(2),[$(2)])"
endef

.PHONY: help demo test checkers packages promises test-all test-others check format sanitize races fuzz bench clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile

demo:  ## build whence, run the example and show what it captured
	$(call ready,$(ENV),)
	$(BIN)/python examples/where.py

test:  ## build whence and run every test, with the fast frame walk and without it
	$(call ready,$(ENV),test)
	$(BIN)/python -m pytest -q -m "not packages"
	WHENCE_FRAMES=public $(BIN)/python -m pytest -q -m "not packaging and not packages and not native and not store"

checkers:  ## install the tools and schemas that exported files are checked with, as far as they can be had
	tools/install-format-checkers

packages:  ## the suites of other packages, recorded, alone and together with other tools: some minutes
	$(call ready,$(ENV),test)
	$(BIN)/python -m pytest -q -m packages

promises:  ## the promises about crashes and forks at length: 2,000 kills, 1,000 forks, 1,000 toggles, 20,000 programs
	$(call ready,$(ENV),test)
	$(BIN)/python -m pytest -q tests/promises tests/unit/test_random_programs.py --kills 2000 --forks 1000 --toggles 1000 --programs 20000

test-others:  ## the same on every other CPython from 3.11 to 3.15 found on the machine
	@for python in $$($(PYTHON) tools/find_pythons.py --except $(VERSION)); do \
	  echo "== $$python"; $(MAKE) --no-print-directory test PYTHON=$$python || exit 1; done

test-all: test test-others  ## the same on every CPython from 3.11 to 3.15 found on the machine

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

sanitize:  ## the tests with AddressSanitizer, UndefinedBehaviorSanitizer and lock-rank checks
	$(call ready,$(ENV)-sanitize,test,-C cmake.define.WHENCE_SANITIZE=ON -C build-dir=build/sanitize-$(VERSION))
	LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc WHENCE_SANITIZED=1 \
	$(ENV)-sanitize/bin/python -m pytest -q -m "not packaging and not packages" --kills 20 --forks 20

races:  ## the native tests with ThreadSanitizer
	$(call ready,$(ENV),)
	PATH="$(CURDIR)/$(BIN):$$PATH" cmake -S . -B build/races -G Ninja -DWHENCE_NATIVE_TESTS=ON -DWHENCE_RACES=ON \
	  -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python >/dev/null
	PATH="$(CURDIR)/$(BIN):$$PATH" cmake --build build/races --target native_tests
	setarch -R build/races/native_tests

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
	for target in line_table text; do \
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

clean:  ## remove everything that was built, the environments too
	rm -rf build dist .venv .mypy_cache .ruff_cache .pytest_cache
