"""Builders of passing smoke trainings."""

from dataclasses import replace
from itertools import combinations
from typing import Any

from helpers.facts.base import MIB
from helpers.facts.gpus import bus_id
from kdoctor.facts import SmokeCase, SmokePair, SmokeRun, Weights
from kdoctor.testing import healthy


def smoke_case(name: str = "mirrored", replicas: int = 8, kind: str = "GPU", **changes: Any) -> SmokeCase:
    """A passing training on this number of replicas."""
    devices = tuple(f"/job:localhost/replica:0/task:0/device:{kind}:{index}" for index in range(replicas))
    values = {"name": name, "replicas": replicas, "devices": devices}
    return replace(healthy(SmokeRun).cases[0], **{**values, **changes})


def smoke_run(scenario: str = "smoke.baseline", replicas: int = 8, *cases: SmokeCase, **changes: Any) -> SmokeRun:
    """A run of a scenario, by default with one healthy case."""
    values: dict[str, Any] = {"scenario": scenario, "replicas_requested": replicas, "gpus_seen": replicas}
    return healthy(SmokeRun, **{**values, "cases": cases or (smoke_case(replicas=replicas),), **changes})


def smoke_pair(first: int = 0, second: int = 1, **changes: Any) -> SmokePair:
    """A pair of H100 that passed without the other GPUs."""
    values: dict[str, Any] = {
        "first": first,
        "second": second,
        "outcome": "trained",
        "phase": "all-reduce",
        "steps": 12,
        "weights": Weights(variables=4, mirrored=4, nonfinite=(), replicas_agree=True),
        "weight_deviation": 6e-8,
        "message_bytes": 128 * MIB,
        "wrong_values": 0,
        "bytes_per_s": 300e9,
        "seconds": 8.0,
    }
    return SmokePair(**{**values, **changes})


def pairs_run(
    replicas: int = 4, changed: dict[tuple[int, int], dict[str, Any]] | None = None, **changes: Any
) -> SmokeRun:
    """A run with every pair of GPUs. ``changed`` overrides single pairs, and ``changes`` overrides the case."""
    changed = changed or {}
    pairs = tuple(smoke_pair(*ends, **changed.get(ends, {})) for ends in combinations(range(replicas), 2))
    addresses = tuple(bus_id(index) for index in range(replicas))
    case = smoke_case("alone", replicas, **{"pairs": pairs, "bus_ids": addresses, **changes})
    return smoke_run("smoke.pairs", replicas, case)
