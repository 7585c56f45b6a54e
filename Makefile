# Everything from nothing: `make demo` and `make test` set up .venv by themselves, once.
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEMO_STAMP := $(VENV)/.installed-demo
PIP := $(BIN)/python -m pip install --disable-pip-version-check

# What pip says, as one line for each package: which one comes, and how large it is.
TELL := awk '/^Collecting / { all++ } \
	/^ *(Downloading|Using cached) .*[.](whl|gz) / { name = $$(NF - 2); sub(/.*\//, "", name); \
		sub(/-(cp|py|pp)[0-9].*/, "", name); size = $$(NF - 1) " " $$NF; gsub(/[()]/, "", size); \
		printf "  %d: %s, %s\n", ++done, name, size; fflush() } \
	/^Processing .*[.]whl/ { name = $$2; sub(/.*\//, "", name); printf "  %d: %s\n", ++done, name; fflush() } \
	/^Installing collected/ { printf "  unpacking %d packages\n", all; fflush() }'

# By itself, as it is by far the largest.
TORCH = @echo "installing torch"; $(PIP) -c requirements.lock torch | $(TELL)

.PHONY: setup demo test test-slow fuzz crash lint browser docs peers bench alternatives paper clean

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "python 3.11 or later is needed; name one with PYTHON=…"; exit 2; }
	@echo "setting up $(VENV)"
	@$(PYTHON) -m venv $(VENV)

# All that the tests need, in the versions of the lock.
$(STAMP): requirements.lock pyproject.toml | $(BIN)/python
	$(TORCH)
	@echo "installing what langevin and its tests need (once)"
	@$(PIP) -r requirements.lock | $(TELL)
	@$(PIP) --quiet --no-deps --no-build-isolation -e .
	@touch $@ $(DEMO_STAMP)

setup: $(STAMP)

# What the demo needs and no more, in the same versions.
$(DEMO_STAMP): requirements.lock pyproject.toml | $(BIN)/python
	$(TORCH)
	@echo "installing what langevin needs (once)"
	@$(PIP) --quiet -c requirements.lock hatchling editables
	@$(PIP) --no-build-isolation -c requirements.lock -e '.[serve]' | $(TELL)
	@touch $@

demo: $(DEMO_STAMP)
	@$(BIN)/langevin demo $(DEMO)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/mypy

test: lint browser
	$(BIN)/pytest -rs --numprocesses 2 --dist worksteal

# The browser in which the tests open pages; as root, on Debian or Ubuntu, it is installed.
browser:
	@command -v chromium chromium-browser google-chrome > /dev/null \
	|| { echo "installing chromium for the tests of pages"; \
	apt-get update -qq && apt-get install -y -qq chromium > /dev/null; } \
	|| { echo "the tests of pages need chromium; install it"; exit 2; }

# Statistical runs of many minutes: the calibration of the calibrated tests.
test-slow: setup
	$(BIN)/pytest -m slow

# Damaged files of every kind before every command, 10,000 of them: docs/reliability.md. FUZZ passes options.
fuzz: setup
	$(BIN)/python -m tests.fuzz $(FUZZ)

# A fault at any file operation, kills, power cuts, 1,000 of them: docs/reliability.md. CRASH passes options.
crash: setup
	$(BIN)/python -m tests.crash $(CRASH)

# Speed against torch and against other samplers, which live in an environment of their own. BENCH passes options.
PEERS := .venv-peers
$(PEERS)/.installed:
	test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	@printf '*\n' > $(PEERS)/.gitignore
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check torch==2.13.0 posteriors blackjax jax jaxlib
	@touch $@

peers: $(PEERS)/.installed

bench: setup
	-$(MAKE) peers
	$(BIN)/python -m benchmarks.run $(BENCH)

# What people would pick instead, measured beside it: hours from nothing; records that are there stay.
alternatives: setup
	$(BIN)/python -m benchmarks.alternatives texts $(ALTERNATIVES)
	$(BIN)/python -m benchmarks.alternatives sentences $(ALTERNATIVES)
	$(BIN)/python -m benchmarks.alternatives tables

# The pages of docs/ as a site in site/, which needs no network to be read.
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "site/index.html"

# The paper's tables and figures with their state; 'make paper TARGET=wp' runs what is missing of one.
paper: setup
	$(BIN)/python -m paper $(TARGET)

clean:
	rm -rf $(VENV) $(PEERS) site
