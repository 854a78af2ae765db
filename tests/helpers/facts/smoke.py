"""Builders of smoke trainings that went well."""

from __future__ import annotations

from typing import Any

from helpers.facts.base import MIB
from kdoctor.facts import SmokeCase, SmokeRun, Weights


def smoke_case(name: str = "mirrored", replicas: int = 8, kind: str = "GPU", **changes: Any) -> SmokeCase:
    """A training that went well over that many replicas."""
    values: dict[str, Any] = {
        "name": name,
        "outcome": "trained",
        "phase": "inspect",
        "strategy": "MirroredStrategy",
        "replicas": replicas,
        "devices": tuple(f"/job:localhost/replica:0/task:0/device:{kind}:{index}" for index in range(replicas)),
        "optimizer": "SGD",
        "examples": 64,
        "global_batch": 16,
        "final_batch": 16,
        "losses": (1.0, 0.5),
        "reference_losses": (1.0, 0.5),
        "weights": Weights(variables=6, mirrored=6, nonfinite=(), replicas_agree=True),
        "weight_deviation": 0.0,
        "build_s": 0.2,
        "first_step_s": 1.0,
        "step_s": 0.01,
        "peak_memory_bytes": 900 * MIB,
        "seconds": 3.0,
    }
    return SmokeCase(**{**values, **changes})


def smoke_run(scenario: str = "smoke.baseline", replicas: int = 8, *cases: SmokeCase, **changes: Any) -> SmokeRun:
    """A scenario whose cases (one healthy case unless given) ran on that many GPUs."""
    values: dict[str, Any] = {
        "scenario": scenario,
        "version": 1,
        "devices_kind": "gpu",
        "replicas_requested": replicas,
        "tensorflow": "2.21.0",
        "keras": "keras 3.15.1",
        "gpus_seen": replicas,
        "import_s": 3.3,
        "cases": cases or (smoke_case(replicas=replicas),),
        "seconds": 8.0,
    }
    return SmokeRun(**{**values, **changes})
