"""What a smoke scenario is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

ScenarioKind = Literal["baseline", "edge-case", "failure-path"]

Tier = Literal["quick", "standard", "full", "job"]
"""How thorough a run is: seconds before every job; a minute after a change; everything, before a release or in
search of a fault. Each holds the ones before it. ``job`` is no such tier: it is the user's own model and data, and
runs only where they are named."""

TIERS: tuple[Tier, ...] = tuple(tier for tier in get_args(Tier) if tier != "job")

Strategy = Literal[
    "mirrored",
    "one-device",
    "central-storage",
    "multi-worker",
    "parameter-server",
    "tpu",
    "data-parallel",
    "model-parallel",
]
"""The strategy of ``tf.distribute`` that a scenario is about; the last two are those of ``keras.distribution``."""

STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)

Framework = Literal["tensorflow", "jax"]
"""What a scenario's program computes with. It is imported once, before the cases; with ``jax`` comes Keras 3 on JAX.
Where JAX is not installed, its cases run without it and say so."""


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A training that is run for real, case by case, each case in a process of its own.

    Third parties add theirs by the entry point ``kdoctor.scenarios``.
    """

    id: str
    """``smoke.<slug>``; stable for ever."""
    version: int
    """Raised whenever what it measures changes, so that recorded outcomes can be compared."""
    kind: ScenarioKind
    title: str
    expect: str
    """The expected outcome in plain language; a checklist may word its own."""
    program: Path
    """A Python file that defines ``CASES``: case name to a function that takes the case's context.
    It runs in the target interpreter and may use the standard library, its framework and ``kdoctor_target``."""
    cases: tuple[str, ...]
    """Names of the program's cases, in order."""
    deadline_s: float
    """Seconds for each case after its framework was imported."""
    tier: Tier = "standard"
    """The least thorough tier that it belongs to."""
    strategy: Strategy = "mirrored"
    framework: Framework = "tensorflow"
    typical_s: float = 5.0
    """Seconds that all its cases together took over two CPU replicas, one after another, without the import."""
    pair_s: float = 0.0
    """Seconds more for each pair of three replicas or more, measured over CPU replicas; 0 where it does not matter."""
    settings: tuple[tuple[str, str | int | None], ...] = ()
    """What its cases are given besides, by name."""
