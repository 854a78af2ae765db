# kdoctor: `make smoke-test` examines this machine, `make test` tests kdoctor. See README.md.

PYTHON ?= python3
CHECKLIST ?= cpu-smoke
CHECK_OPTIONS ?=
PYTEST_OPTIONS ?=
# Percent of branches, without what runs in subprocesses.
COVERAGE ?= 85

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# Stamps: a set-up that was interrupted has none, so the next run takes it up again.
RUN_STAMP := $(VENV)/.kdoctor-run
DEV_STAMP := $(VENV)/.kdoctor-dev

.DEFAULT_GOAL := help
.PHONY: help smoke-test test lint types contracts pytest test-wheels test-matrix test-smoke test-drill test-services snapshots bench docs constraints clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

smoke-test: $(RUN_STAMP) ## Examine this machine and train on it: kdoctor check --checklist $(CHECKLIST)
	@$(BIN)/kdoctor check --checklist $(CHECKLIST) $(CHECK_OPTIONS)

test: lint types contracts pytest ## Everything that CI tests

lint: $(DEV_STAMP) ## Style
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(DEV_STAMP) ## mypy (strict) and basedpyright
	@$(BIN)/mypy
	@$(BIN)/basedpyright

contracts: $(DEV_STAMP) ## Who may import whom
	@$(BIN)/lint-imports

pytest: $(DEV_STAMP) ## The tests, with the real TensorFlow ones, and the gate of branch coverage
	@$(BIN)/pytest --numprocesses auto --dist loadscope --cov --cov-report= --cov-fail-under=$(COVERAGE) $(PYTEST_OPTIONS)

test-wheels: $(DEV_STAMP) ## What would be loaded, from real NVIDIA wheels (downloads 3 GB)
	@$(BIN)/pytest -m wheels $(PYTEST_OPTIONS)

test-drill: $(DEV_STAMP) ## Upgrade to a Keras that trains wrongly, catch it, roll back, be green (downloads 600 MB)
	@$(BIN)/pytest -m drill $(PYTEST_OPTIONS)

test-services: $(DEV_STAMP) ## Real Slurm, Nagios, Prometheus, pre-commit and linters, those that are installed
	@$(BIN)/pytest -m services $(PYTEST_OPTIONS)

test-smoke: $(DEV_STAMP) ## Every scenario with both Keras, against the table in docs/smoke.md (minutes)
	@$(BIN)/pytest -m smoke_full $(PYTEST_OPTIONS)

test-matrix: $(DEV_STAMP) ## Real environments of TensorFlow 2.15 to 2.21 against the version matrix (downloads 6 GB)
	@$(BIN)/pytest -m matrix -s $(PYTEST_OPTIONS)

snapshots: $(DEV_STAMP) ## Rewrite the snapshot files of whole screens; review the diff
	@$(BIN)/pytest --snapshot-update $(PYTEST_OPTIONS)

bench: $(DEV_STAMP) ## Speed, as ratios against something in the same run
	@$(BIN)/python benchmarks/run.py

docs: $(DEV_STAMP) ## Write the generated pages anew
	@$(BIN)/python docs/generate.py

constraints: ## Resolve constraints.txt anew (needs uv)
	@{ sed -n '/^#/p' constraints.txt; printf 'pip\nsetuptools>=77\n' | uv pip compile --quiet --universal \
	  --python-version 3.10 --upgrade --no-annotate --no-header --no-emit-index-url --extra tensorflow --group dev \
	  pyproject.toml -; } > constraints.new
	@mv constraints.new constraints.txt

clean: ## Remove the virtual environment and every cache
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage

$(BIN)/python:
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 10) else \
	  f"kdoctor needs Python 3.10 or newer, and {sys.executable} is {v.major}.{v.minor}. Name another: make PYTHON=python3.12 ...")'
	@echo "Making $(VENV) ..."
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "Could not make a virtual environment; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }

$(RUN_STAMP): pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing kdoctor with TensorFlow into $(VENV) (once) ..."
	@$(PIP) install -qq --constraint constraints.txt --upgrade pip setuptools
	@$(PIP) install -qq --constraint constraints.txt --editable '.[tensorflow]'
	@touch $@

$(DEV_STAMP): $(RUN_STAMP)
	@echo "Installing what the tests need into $(VENV) (once) ..."
	@$(PIP) install -qq --constraint constraints.txt --group dev
	@touch $@
