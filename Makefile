# Everything from nothing: `make demo` and `make test` set up .venv by themselves, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup demo test test-slow lint clean

$(STAMP): requirements.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "python 3.11 or later is needed; name one with PYTHON=…"; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

setup: $(STAMP)

demo: setup
	$(BIN)/langevin demo

lint: setup
	$(BIN)/ruff check .
	$(BIN)/mypy

test: lint
	$(BIN)/pytest

# Statistical runs of many minutes: the calibration of the calibrated tests.
test-slow: setup
	$(BIN)/pytest -m slow

clean:
	rm -rf $(VENV)
