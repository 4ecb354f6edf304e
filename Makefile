# Two commands do everything on a fresh machine: `make demo` and `make test`.
VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed

.PHONY: help setup browser demo test test-all lint bench clean

help:
	@echo "make demo      set up, fit the embedded data set, write demo-report.html"
	@echo "make test      set up, lint, types, import contract, fast tests"
	@echo "make test-all  the same and the long statistical suite"
	@echo "make bench     benchmarks; ratios go to benchmarks/results"

setup: $(STAMP)

$(STAMP): pyproject.toml tools/bootstrap.sh
	@PYTHON="$(PYTHON)" sh tools/bootstrap.sh $(VENV)
	@$(PY) -m pip install --quiet --editable ".[dev]"
	@touch $(STAMP)

browser:
	@sh tools/browser.sh

demo: setup
	@$(PY) -m bayes_lepu demo

lint: setup
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(VENV)/bin/lint-imports

test: lint browser
	$(PY) -m pytest

test-all: lint browser
	$(PY) -m pytest -m "slow or not slow"

bench: setup
	$(PY) -m benchmarks

clean:
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
