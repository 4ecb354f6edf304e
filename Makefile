# Two commands do everything on a fresh machine: `make demo` and `make test`.
VENV := .venv
PY := $(VENV)/bin/python
LIBRARY := $(VENV)/.library
STAMP := $(VENV)/.installed
LOWEST := .lowest-venv
UV := VIRTUAL_ENV=$(LOWEST) $(LOWEST)/bin/uv pip

.PHONY: help setup browser demo test test-all coverage test-lowest lint bench bench-real docs notebooks reproduce wheel clean

help:
	@echo "make demo      install the library, fit the embedded data set, write demo-report.html"
	@echo "make test      install the tools too; lint, types, import contract, fast tests"
	@echo "make test-all  the same and the long statistical suite"
	@echo "make wheel     build wheel and sdist, and try the wheel in an environment of its own"
	@echo "make test-lowest the fast tests with the oldest versions of what the library needs"
	@echo "make coverage  which lines of the library the fast tests run"
	@echo "make bench     benchmarks; ratios go to benchmarks/results and the README"
	@echo "make bench-real public tables, labelled in many ways; goes on where it was stopped"
	@echo "make reproduce the paper's tables in full, to docs/reproduction; goes on where it was stopped"
	@echo "make notebooks run all notebooks and store their outputs"
	@echo "make docs      build the documentation in site/"

setup: $(STAMP)

# The library and what it needs, nothing else.
$(LIBRARY): pyproject.toml tools/bootstrap.sh
	@PYTHON="$(PYTHON)" sh tools/bootstrap.sh $(VENV)
	@echo "Installing the library into $(VENV): PyMC, ArviZ, numba and what they need."
	@$(PY) -m pip install --disable-pip-version-check --no-compile --editable .
	@touch $(LIBRARY)

# The tools for tests, documentation and notebooks as well.
$(STAMP): $(LIBRARY)
	@echo "Installing the development tools into $(VENV)."
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-compile --editable ".[dev]"
	@touch $(STAMP)

# Chromium for the tests of the report, on the machine itself: only when asked for by name.
browser:
	@sh tools/browser.sh

demo: $(LIBRARY)
	@$(PY) -m bayes_lepu demo

lint: setup
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(VENV)/bin/lint-imports

# Two processes share the cores; threads of BLAS in each would wait for one another.
test test-all: export OMP_NUM_THREADS = 1
test test-all: export OPENBLAS_NUM_THREADS = 1

test: lint
	$(PY) -m pytest -n 2 --dist worksteal

test-all: lint
	$(PY) -m pytest -n 2 --dist worksteal -m "slow or not slow"

coverage: setup
	$(PY) -m pytest -n 2 --dist worksteal --cov --cov-report=term:skip-covered

bench: setup
	@$(PY) -m pip install --quiet --no-deps pulearn pu-toolbox six
	$(PY) -m benchmarks
	$(PY) -m tools.figures

# TABLES names the folder of the tables (uci/*.csv, curved/*.csv.gz); the default is ../shared/data.
bench-real: setup
	$(PY) -m benchmarks.real --store $(if $(TABLES),--tables $(TABLES))
	$(PY) -m tools.figures

notebooks: setup
	$(PY) -m tools.notebooks

docs: setup
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict
	@echo "Open site/index.html in a browser; the search works without any network."

# The human annotators need their tables: BAYES_LEPU_DATA names the folder that holds them.
reproduce: setup
	$(PY) -m reproduction

# The wheel as a stranger would use it: built, installed in an environment of its own, tried there.
wheel:
	@PYTHON="$(PYTHON)" sh tools/wheel.sh

# The fast tests with the oldest versions that pyproject.toml allows, as far as this Python has wheels of
# them; 3.12 has them all. TESTS names some of the tests.
test-lowest:
	@PYTHON="$(PYTHON)" sh tools/bootstrap.sh $(LOWEST)
	@$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check uv
	@$(UV) compile --quiet --resolution lowest-direct --no-build --extra dev pyproject.toml --output-file $(LOWEST)/versions.txt
	@$(UV) install --quiet --requirement $(LOWEST)/versions.txt
	@$(UV) install --quiet --no-deps --editable .
	$(LOWEST)/bin/python -m pytest -n 2 --dist worksteal $(TESTS)

clean:
	rm -rf $(VENV) $(LOWEST) dist build site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
