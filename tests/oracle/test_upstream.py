"""kdoctor's verdicts agree with the tests that Keras' and tf_keras' own wheels ship.

``make test-oracle`` runs them in the environments of ``make truth`` (``build/truth``, or the folder in
``TRUTH_FOLDER``), on logical CPU devices. Where a test of theirs fails, kdoctor must report a defect of that release.
Where theirs pass, every defect that kdoctor finds must be in the table of what distributed Keras does, with the same
result. ``ORACLE_RECORD`` names a file for the results, such as docs/keras-oracle.json, which docs/keras-truth.md shows.
Rows of a release and a file that were not run again stay in it.
"""

import datetime as dt
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from benchmarks.truth.environments import ENVIRONMENTS, Environment, Package, build, installed
from benchmarks.truth.judge import Cell, judge_run, runs_of
from benchmarks.truth.measure import features

from helpers.upstream import CORRECTNESS, SUITES, Upstream, run_correctness, run_suite
from kdoctor.catalog.load import load_catalog
from kdoctor.matrix.keras import HARMLESS, measured_result
from kdoctor.matrix.load import load_matrix
from kdoctor.snapshot.document import load

pytestmark = [pytest.mark.oracle]

ROOT = Path(__file__).parents[2]
FOLDER = Path(os.environ.get("TRUTH_FOLDER", ROOT / "build/truth"))
ON_TENSORFLOW = ("smoke.baseline", "smoke.custom-loop", "smoke.state")
ON_JAX = ("smoke.data-parallel", "smoke.model-parallel")
ABOUT: dict[str, tuple[str, ...]] = {"test_gradient_accumulation": ("state/accumulation",)}
"""Tests of theirs that are about one feature. All others are about what every job needs."""

RELEASES = [
    pytest.param(environment, package, id=f"{environment.name}-{package}")
    for environment in ENVIRONMENTS
    for package in environment.packages
]


@pytest.fixture(scope="session")
def record() -> Iterator[list[dict[str, Any]]]:
    rows: list[dict[str, Any]] = []
    yield rows
    if name := os.environ.get("ORACLE_RECORD"):
        file = Path(name)
        before = json.loads(file.read_text(encoding="utf-8"))["rows"] if file.exists() else []
        known = {(row["package"], row["release"], row["suite"]): row for row in [*before, *rows]}
        file.write_text(json.dumps({"rows": list(known.values())}, indent=1) + "\n", encoding="utf-8")


def verdicts(python: Path, package: Package, scenarios: tuple[str, ...], folder: Path) -> dict[str, Cell]:
    """kdoctor's verdicts, measured now."""
    output = folder / f"{scenarios[0]}-{package}.json"
    environ = {**os.environ, "KERAS_BACKEND": "tensorflow", "KDOCTOR_NO_HISTORY": "1"}
    environ |= {"TF_USE_LEGACY_KERAS": "1"} if package == "tf_keras" else {}
    catalog = load_catalog()
    wanted = features(catalog.scenarios[name] for name in scenarios)
    command = [sys.executable, "-m", "benchmarks.truth.measure", str(python), str(output), *wanted]
    subprocess.run(command, check=True, cwd=ROOT, env=environ, capture_output=True, timeout=900)
    facts = load(output, catalog.fact_groups).facts
    return {name: cell for run in runs_of(facts).values() for name, cell in judge_run(catalog, facts, run).items()}


def hold(theirs: dict[str, Upstream], ours: dict[str, Cell], package: str, release: str) -> None:
    """Compare the verdicts."""
    matrix = load_matrix(environ={})
    defects = {name: cell for name, cell in ours.items() if cell.result not in HARMLESS}
    for suite, result in theirs.items():
        for test in result.failed:
            about = next((names for name, names in ABOUT.items() if test.startswith(name)), tuple(ours))
            assert set(about) & set(defects), f"{suite}: {test} fails with {package} {release}, and kdoctor passes it"
    for name, cell in defects.items():
        documented = measured_result(matrix.keras_features, name, package, release)
        assert documented == cell.result, f"{name} is {cell.result} with {package} {release}, but it is not documented"


def note(record: list[dict[str, Any]], package: str, release: str, theirs: dict[str, Upstream]) -> None:
    today = dt.datetime.now(dt.timezone.utc).date().isoformat()
    about = {"package": package, "release": release, "measured": today}
    record += [{**about, "suite": name, **asdict(one)} for name, one in theirs.items()]
    if not any(one.passed or one.failed for one in theirs.values()):
        pytest.skip(f"{package} {release} ships no tests")


@pytest.mark.parametrize(("environment", "package"), RELEASES)
def test_verdicts_on_tensorflow_agree(
    environment: Environment, package: Package, tmp_path: Path, record: list[dict[str, Any]]
) -> None:
    python = build(environment, FOLDER / "environments")
    release = installed(python)[package]
    theirs: dict[str, Upstream] = {}
    if environment.tf_keras:
        theirs[CORRECTNESS] = run_correctness(python, package, tmp_path)
    if package == "keras":
        add(python, "pytest")
        suites = [name for name, backend in SUITES.items() if backend == "tensorflow"]
        theirs |= {suite: run_suite(python, release, suite, tmp_path) for suite in suites}
    note(record, package, release, theirs)
    hold(theirs, verdicts(python, package, ON_TENSORFLOW, tmp_path), package, release)


@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=lambda environment: environment.name)
def test_verdicts_on_jax_agree(environment: Environment, tmp_path: Path, record: list[dict[str, Any]]) -> None:
    if environment.jax is None:
        pytest.skip("no JAX for this release")
    python = build(environment, FOLDER / "environments")
    release = installed(python)["keras"]
    add(python, "pytest", f"jax=={environment.jax}")
    suites = [name for name, backend in SUITES.items() if backend == "jax"]
    theirs = {suite: run_suite(python, release, suite, tmp_path) for suite in suites}
    note(record, "keras", release, theirs)
    hold(theirs, verdicts(python, "keras", ON_JAX, tmp_path), "keras", release)


def add(python: Path, *requirements: str) -> None:
    """Install packages that only the tests need."""
    with_uv = ["uv", "pip", "install", "--quiet", "--python", str(python)]
    with_pip = [str(python), "-m", "pip", "install", "--quiet"]
    command = with_uv if shutil.which("uv") else with_pip
    subprocess.run([*command, *requirements], check=True, capture_output=True, timeout=900)
