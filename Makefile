# kdoctor: `make smoke-test` checks this machine, `make test` tests kdoctor. See README.md.

PYTHON ?= python3
CHECKLIST ?= cpu-smoke
CHECK_OPTIONS ?=
PYTEST_OPTIONS ?=

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# Most modules are never imported: Python compiles those that are.
INSTALL := $(PIP) install -qq --no-compile --constraint constraints.txt
# Stamp files: an interrupted set-up has none, so the next run resumes it.
RUN_STAMP := $(VENV)/.kdoctor-run
TYPES_STAMP := $(VENV)/.kdoctor-types
DEV_STAMP := $(VENV)/.kdoctor-dev

.DEFAULT_GOAL := help
# Every target with a help text is a command, not a file.
.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*\#\# .*/\1/p' Makefile measure.mk)

SHOW_TARGETS := awk -F ':.*\#\# ' '/^[a-z-]+:.*\#\# /{printf "  make %-13s %s\n", $$1, $$2}'
help: ## Show this help; `make help-measure` shows measurements and rare tests
	@$(SHOW_TARGETS) Makefile

smoke-test: $(RUN_STAMP) ## Check this machine: kdoctor check --checklist $(CHECKLIST)
	@$(BIN)/kdoctor check --checklist $(CHECKLIST) $(CHECK_OPTIONS)

STARTED := $(shell date +%s)
# Hundreds of tests start Python again, which would compile kdoctor each time.
unexport PYTHONDONTWRITEBYTECODE
test: ## Run everything that CI tests
	@$(MAKE) --no-print-directory --jobs 3 types lint contracts imports collect
	@$(MAKE) --no-print-directory pytest
	@echo "make test took $$(($$(date +%s) - $(STARTED))) seconds"

lint: $(DEV_STAMP) ## Check style with ruff, and language and structure with tests/style.py
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/python tests/style.py

# mypy skips the frameworks, so that they can be installed meanwhile.
types: $(TYPES_STAMP) ## Check types with mypy (strict)
	@$(BIN)/mypy

contracts: $(DEV_STAMP) ## Check the import contracts
	@$(BIN)/lint-imports

# The processes of pytest would each compile all tests, and all trainings TensorFlow.
imports: $(DEV_STAMP)
	@$(BIN)/python -c 'import tensorflow, tf_keras, jax'

collect: $(DEV_STAMP)
	@$(BIN)/pytest --collect-only -qq > /dev/null

# Two more than there are processors: tests that wait for a time limit leave them idle.
WORKERS = $$(($$(getconf _NPROCESSORS_ONLN) + 2))
PYTEST := $(BIN)/pytest --numprocesses $(WORKERS) --dist loadscope --no-loadscope-reorder --durations 25 --durations-min 1
pytest: $(DEV_STAMP) ## Run the tests, including real trainings
	@$(PYTEST) $(PYTEST_OPTIONS)

snapshots: $(DEV_STAMP) ## Rewrite the snapshot files of whole screens; review the diff
	@$(BIN)/pytest --snapshot-update $(PYTEST_OPTIONS)

bench: $(DEV_STAMP) ## Measure speed as ratios within the same run
	@$(BIN)/python benchmarks/run.py
	@$(BIN)/python benchmarks/watched_hooks.py
	@$(BIN)/python benchmarks/watched_fit.py

site: $(DEV_STAMP) ## Build the documentation site into build/site
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# The tools of a release are not those of development, so they get a separate environment.
RELEASE_STAMP := $(VENV)-release/.kdoctor-release
RELEASE := $(abspath $(VENV)-release/bin)

dist: $(DEV_STAMP) $(RELEASE_STAMP) ## Build sdist and wheel of the last commit into dist, twice, and check them
	@rm -rf dist
	@$(RELEASE)/python .github/release/dist.py --twice dist
	@$(RELEASE)/twine check --strict dist/*
	@$(RELEASE)/check-wheel-contents dist/*.whl

$(RELEASE_STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -m venv $(VENV)-release
	@$(VENV)-release/bin/python -m pip --disable-pip-version-check install -qq --constraint constraints.txt --upgrade pip
	@$(VENV)-release/bin/python -m pip --disable-pip-version-check install -qq --constraint constraints.txt --group release
	@touch $@

include measure.mk

clean: ## Remove the virtual environment and all caches
	rm -rf $(VENV) $(VENV)-oldest $(VENV)-release $(VENV)-torch build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage

$(BIN)/python:
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 10) else \
	  f"kdoctor needs Python 3.10 or newer, and {sys.executable} is {v.major}.{v.minor}. Use another interpreter: make PYTHON=python3.12 ...")'
	@echo "Creating $(VENV) ..."
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "Could not create a virtual environment. On Debian and Ubuntu, run: apt-get install python3-venv" >&2; exit 1; }

$(RUN_STAMP): pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing kdoctor with TensorFlow into $(VENV) (once) ..."
	@$(INSTALL) --upgrade pip setuptools
	@$(INSTALL) --editable '.[tensorflow]'
	@touch $@

$(TYPES_STAMP): pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing kdoctor with TensorFlow and the test dependencies into $(VENV) (once) ..."
	@$(INSTALL) --upgrade pip setuptools
	@$(INSTALL) --editable . --group dev
	@touch $@

$(DEV_STAMP): $(TYPES_STAMP)
	@$(INSTALL) --editable '.[tensorflow]' --group dev --group frameworks
	@touch $(RUN_STAMP) $@
