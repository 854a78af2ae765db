# Measurements, and tests that download, break or need much: `make help-measure`. CI runs none of them.

TRUTH_OPTIONS ?=
# How many inputs `make fuzz` gives each reader.
INPUTS ?= 2000
# How many mutants `make mutants` tries; 0 for all.
SAMPLE ?= 2000
MUTANTS_OPTIONS ?=

help-measure: ## Show these targets
	@$(SHOW_TARGETS) measure.mk

bench-start: $(DEV_STAMP) ## Print the start-up times as ratios (20 seconds; it never fails)
	@$(BIN)/python benchmarks/run.py --start

test-wheels: $(DEV_STAMP) ## Read the real wheels again: rows of the matrix, lookup of libraries (downloads 15 GB)
	@$(BIN)/pytest -m wheels $(PYTEST_OPTIONS)

test-removal: $(DEV_STAMP) ## Take each extension away and test the rest: KDOCTOR_REMOVAL=whole runs all of it (an hour)
	@KDOCTOR_REMOVAL=$${KDOCTOR_REMOVAL:-1} $(BIN)/pytest tests/test_removal.py $(PYTEST_OPTIONS)

test-drill: $(DEV_STAMP) ## Break environments, paste the printed fix, pass again; roll back (downloads 700 MB)
	@TMPDIR=$(or $(TMPDIR),/tmp) $(BIN)/pytest -m drill $(PYTEST_OPTIONS)

# It needs no network and not this environment: the interpreter is PYTHON, if given, and WHEELS names a folder with
# wheels of what it lacks (tests/gpu/wheels.txt).
test-gpu: ## Test on a real NVIDIA GPU, offline: PYTHON=python3.12 WHEELS=folder (8 minutes)
	@$(if $(filter file,$(origin PYTHON)),$(or $(wildcard $(BIN)/python),$(PYTHON)),$(PYTHON)) tests/gpu/run.py \
	  $(if $(WHEELS),--wheels '$(WHEELS)') $(PYTEST_OPTIONS)

test-services: $(DEV_STAMP) ## Test with the installed Slurm, Nagios, Prometheus, pre-commit and linters
	@$(BIN)/pytest -m services $(PYTEST_OPTIONS)

# The packages of Debian need root; kubectl and a Kubernetes are in neither registry, and their tests are skipped.
FLEET_PACKAGES := slurm-wlm munge openssh-server openssh-client iproute2 iptables procps
fleet-tools: $(DEV_STAMP) ## Install what test-fleet uses: packages of Debian or Ubuntu (root), Ray, Kubernetes' client
	@apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes $(FLEET_PACKAGES)
	@$(PIP) install -qq --constraint constraints.txt --group fleet

test-fleet: $(DEV_STAMP) ## Test with the installed sshd, Slurm, Ray and Kubernetes' client: faulty nodes, pairs (15 minutes)
	@$(BIN)/pytest -m fleet tests/kdoctor_fleet/engines $(PYTEST_OPTIONS)

# In percent of branches; code that only runs in subprocesses is not measured. Measuring doubles the time of the tests.
COVERAGE ?= 85

coverage: $(DEV_STAMP) ## Run the tests of `make test` with the coverage gate
	@$(PYTEST) --cov --cov-report= --cov-fail-under=$(COVERAGE) $(PYTEST_OPTIONS)

test-smoke: $(DEV_STAMP) ## Run the trainings that `make test` leaves out: every scenario, job and reproduction
	@$(BIN)/pytest --numprocesses auto --dist loadscope -m smoke_full --durations 25 $(PYTEST_OPTIONS)

# torch installs gigabytes of CUDA libraries, so it gets a separate environment.
TORCH_STAMP := $(VENV)-torch/.kdoctor-torch

fuzz: $(DEV_STAMP) ## Feed changed documents to every reader: INPUTS=2000 (prints inputs by reader)
	@KDOCTOR_FUZZ=$(INPUTS) $(BIN)/pytest --numprocesses auto tests/fuzz/test_readers.py -k changed_document $(PYTEST_OPTIONS)

mutants: $(DEV_STAMP) ## Change the code in small ways: SAMPLE=2000 (prints kills by package, and survivors)
	@$(BIN)/python tests/mutants/run.py --sample $(SAMPLE) $(MUTANTS_OPTIONS)

faults: $(DEV_STAMP) ## Break everything around a running kdoctor, one thing at a time (5 minutes)
	@TMPDIR=$(or $(TMPDIR),/tmp) $(BIN)/pytest -m 'faults or not faults' tests/faults tests/load tests/fuzz/test_special_files.py $(PYTEST_OPTIONS)

evidence: $(DEV_STAMP) ## Take every fact away from many machines, one and two at a time: no status may get better
	@$(BIN)/pytest -m evidence $(PYTEST_OPTIONS)

test-torch: $(DEV_STAMP) $(TORCH_STAMP) ## Train Keras on torch over several processes (downloads 3 GB)
	@KDOCTOR_TORCH_PYTHON=$(abspath $(VENV)-torch/bin/python) $(BIN)/pytest -m torch $(PYTEST_OPTIONS)

$(TORCH_STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -m venv $(VENV)-torch
	@$(VENV)-torch/bin/python -m pip --disable-pip-version-check install -qq --constraint constraints.txt keras torch
	@touch $@

test-matrix: $(DEV_STAMP) ## Test TensorFlow 2.15 to 2.21 against the version matrix (downloads 6 GB)
	@$(BIN)/pytest -m matrix -s $(PYTEST_OPTIONS)

test-oracle: $(DEV_STAMP) ## Compare verdicts with the tests that Keras' wheels ship (downloads 6 GB)
	@$(BIN)/pytest -m oracle $(PYTEST_OPTIONS)

truth: $(DEV_STAMP) ## Measure what each release of Keras does on several replicas (downloads 6 GB, an hour)
	@$(BIN)/python -m benchmarks.truth $(TRUTH_OPTIONS)

explore: $(DEV_STAMP) ## Judge jobs drawn from the public API of Keras on two replicas (an hour)
	@$(BIN)/python -m benchmarks.explore $(EXPLORE_OPTIONS)

restore-trials: $(DEV_STAMP) ## Save, kill and restore 47 jobs and loops with planted faults: RESTORE_OPTIONS='--moments 10 EMA' (10 minutes)
	@$(BIN)/python -m benchmarks.restore_trials $(RESTORE_OPTIONS)

bench-lint: $(DEV_STAMP) ## Measure precision and recall of the lint rules on the labelled set
	@$(BIN)/python -m benchmarks.lint_labelled
	@$(BIN)/python -m benchmarks.lint_generated 10000

bench-diagnose: $(DEV_STAMP) ## Measure how often diagnose is right on the logs of DIR, which has a truth.csv
	@$(BIN)/python -m benchmarks.diagnose_truth $(DIR)

docs: $(DEV_STAMP) ## Rewrite the screens in README.md
	@$(BIN)/python -m docs.generator

sbom: $(RELEASE_STAMP) ## List what the wheel in dist installs, as CycloneDX, into build/sbom.cdx.json
	@rm -rf build/sbom && mkdir -p build
	@$(PYTHON) -m venv build/sbom
	@build/sbom/bin/python -m pip --disable-pip-version-check install -qq --constraint constraints.txt dist/*.whl
	@$(RELEASE)/cyclonedx-py environment --output-reproducible --pyproject pyproject.toml --output-format JSON \
	  --output-file build/sbom.cdx.json build/sbom/bin/python

test-dist: $(DEV_STAMP) $(RELEASE_STAMP) ## Build, install with every extra on each Python of this machine, and run
	@$(BIN)/pytest -m dist tests/release $(PYTEST_OPTIONS)

# The oldest Python that is supported, with the oldest versions of the dependencies and the tests' tools.
OLDEST_STAMP := $(VENV)-oldest/.kdoctor-oldest
OLDEST_TESTS := tests/kdoctor tests/kdoctor_checks tests/kdoctor_lint

test-oldest: $(OLDEST_STAMP) ## Test with the oldest versions of the dependencies (OLDEST=python3.10), without trainings
	@$(VENV)-oldest/bin/python -m pytest --numprocesses auto --dist loadscope $(OLDEST_TESTS) $(PYTEST_OPTIONS) \
	  -m 'not tensorflow and not browser and not compiler and not corpus and $(NOT_OLDEST)'

# What `make test` leaves out, too: the expression in pyproject.toml.
NOT_OLDEST := $(shell sed -n 's/^addopts = .*"-m", "\(.*\)"\]$$/\1/p' pyproject.toml)
OLDEST ?= python3.10

$(OLDEST_STAMP): pyproject.toml constraints-oldest.txt
	@$(OLDEST) -m venv $(VENV)-oldest
	@$(VENV)-oldest/bin/python -m pip --disable-pip-version-check install -qq --constraint constraints-oldest.txt \
	  --editable '.[fleet]' coverage hypothesis jsonschema junitparser markdown-it-py nbformat prometheus-client \
	  pytest pytest-cov pytest-randomly pytest-xdist syrupy
	@touch $@

constraints: ## Resolve constraints.txt again (needs uv)
	@{ sed -n '/^#/p' constraints.txt; printf 'pip\nsetuptools>=77\n' | uv pip compile --quiet --universal \
	  --python-version 3.10 --upgrade --no-annotate --no-header --no-emit-index-url --extra tensorflow --extra torch \
	  --extra mcp --group dev --group docs --group release --group fleet pyproject.toml -; } > constraints.new
	@mv constraints.new constraints.txt
	@{ sed -n '/^#/p' constraints-oldest.txt; uv pip compile --quiet --resolution lowest-direct --python-version 3.10 \
	  --python-platform linux --no-annotate --no-header --no-emit-index-url --extra fleet \
	  pyproject.toml; } > constraints.new
	@mv constraints.new constraints-oldest.txt
