"""The yardstick for a tier: the same trainings in sequence in one process.

It has no child processes (but those that a training itself needs, as the workers), no deadlines and no checks.
"""

import contextlib
import importlib
import io
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from kdoctor.smoke.builtin import SCENARIOS
from kdoctor.smoke.scenario import TIERS, Scenario
from kdoctor_target.runner.case import Case, NotHere
from kdoctor_target.runner.case_main import case_function

REPLICAS = 2
LAST = ("smoke.determinism",)
"""Scenarios that change the process for good."""


def prepare(framework: str) -> None:
    """Set up the framework as a script does, with one strategy: two in one process break each other's collectives."""
    if framework == "jax":
        os.environ.update(KERAS_BACKEND="jax", JAX_PLATFORMS="cpu")
        os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={2 * REPLICAS}"
        return
    replicas: Any = importlib.import_module("kdoctor_target.training.replicas")
    make_strategy = replicas.make_strategy
    made: list[Any] = []

    def make_once(case: Case) -> Any:
        made.extend([] if made else [make_strategy(case)])
        return made[0]

    def list_devices(_: Case) -> list[str]:
        return list(made[0].extended.worker_devices)

    make_once(Case(io.StringIO(), "cpu", REPLICAS, stem=Path("unused"), deadline_s=0))
    replicas.make_strategy, replicas.replica_devices = make_once, list_devices


def train(scenario: Scenario, name: str, folder: Path) -> str:
    """Train one case; returns how it ended."""
    program = importlib.import_module(f"kdoctor_target.scenarios.{scenario.program.stem}")
    stem = folder / f"{scenario.id}.{name}"
    case = Case(io.StringIO(), "cpu", REPLICAS, stem=stem, deadline_s=scenario.deadline_s)
    try:
        case_function(program, name)(case)
    except NotHere:
        return "skipped"
    except Exception as error:  # noqa: BLE001 - what Keras 3 raises is one of the results
        return type(error).__name__
    finally:
        if scenario.id == "smoke.mixed-precision":
            importlib.import_module("tensorflow").keras.mixed_precision.set_global_policy("float32")
    return "trained"


def train_cases(scenario: Scenario, folder: Path) -> None:
    """Train every case, and print how it ended."""
    for name in scenario.cases:
        print(scenario.id, name, train(scenario, name, folder), flush=True)


def train_apart(scenario: Scenario, folder: Path) -> None:
    """Train each case in a fork: its workers must start before TensorFlow uses a device, and it uses one afterwards."""
    for name in scenario.cases:
        pid = os.fork()
        if pid == 0:
            try:
                print(scenario.id, name, train(scenario, name, folder), flush=True)
            finally:
                os._exit(0)
        os.waitpid(pid, 0)


def main() -> None:
    """Train the tier and the quicker ones with one framework, and print how each case ended."""
    tier, framework = sys.argv[1:]
    tiers = TIERS[: [str(name) for name in TIERS].index(tier) + 1]
    chosen = [one for one in SCENARIOS if one.tier in tiers and one.framework == framework]
    forking = [one for one in chosen if one.strategy == "multi-worker"]
    others = sorted((one for one in chosen if one not in forking), key=lambda one: one.id in LAST)
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        if forking:
            _ = importlib.import_module("tensorflow").keras.Model  # imports Keras once, not in every worker
        for scenario in forking:
            train_apart(scenario, Path(folder))
        prepare(framework)
        for scenario in others:
            train_cases(scenario, Path(folder))


if __name__ == "__main__":
    main()
