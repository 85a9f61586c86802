PYTHON ?= python3
VENV ?= .venv
PYTEST_ARGS ?=
WORKERS ?= 2

BIN := $(VENV)/bin

# What each target needs installed.
EXTRAS_test := test,dev
EXTRAS_demo := demo
EXTRAS_bench := bench

.DEFAULT_GOAL := help
.PHONY: help demo test bench clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\): .*## \(.*\)/make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 14

demo: $(VENV)/.installed-demo ## run the demonstration
	@$(BIN)/jointgrad demo

test: $(VENV)/.installed-test ## lint, check the types, run the tests (PYTEST_ARGS="-m 'not slow'" for the quick ones)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/mypy
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(PYTEST_ARGS)

bench: $(VENV)/.installed-bench ## time the articulated-body dynamics
	$(BIN)/python benchmarks/articulated.py

clean: ## remove .venv, caches and build products (results in runs/ and out/ stay)
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +

# The virtual environment with the extras of one target; made again when the requirements change.
$(VENV)/.installed-%: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "jointgrad needs Python 3.11 or newer, and '$(PYTHON)' is not that: set one with make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "Installing jointgrad[$(EXTRAS_$*)] into $(VENV); the first time takes a few minutes"
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV) || { \
	    echo "'$(PYTHON) -m venv' failed: on Debian and Ubuntu, install the package python3-venv" >&2; exit 1; }
	@PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt \
	    $(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[$(EXTRAS_$*)]'
	@touch $@
