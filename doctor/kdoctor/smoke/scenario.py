"""The definition of a smoke scenario."""

from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from kdoctor.records import record

ScenarioKind = Literal["baseline", "edge-case", "failure-path"]

Tier = Literal["quick", "standard", "full", "job"]
"""How thorough a run is: ``quick`` takes seconds, for every job; ``standard`` a minute, after a change; ``full`` tests
everything. Each tier includes the quicker ones. A scenario of ``job`` runs only if it is asked for."""

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
    "distributed-data-parallel",
]
"""The ``tf.distribute`` strategy of a scenario; the last three belong to ``keras.distribution`` and to torch."""

STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)

Framework = Literal["tensorflow", "jax", "torch"]
"""The framework of a scenario's program. It is imported once, before the cases; ``jax`` includes Keras 3 on JAX,
``torch`` Keras 3 on torch. If one of the two is not installed, its cases run without it and report that."""


@record
class Scenario:
    """A small training with one or more cases, each in a separate process.

    Plugins add scenarios with the entry point ``kdoctor.scenarios``.
    """

    id: str
    """``smoke.<slug>``; never changes."""
    version: int
    """Incremented when the measurement changes, so that recorded outcomes can be compared."""
    kind: ScenarioKind
    title: str
    expect: str
    """The expected outcome as text; a checklist may override it."""
    program: Path
    """A Python file with a function for each case, which takes the case's context. The function has the name of the
    case with underscores, or is in a dictionary ``CASES`` by the name of the case. The file runs in the target
    interpreter, with the standard library, its framework and ``kdoctor_target``."""
    cases: tuple[str, ...]
    """Names of the cases, in order."""
    judged_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict, compare=False)
    """The cases that each check judges, by the check's id."""
    deadline_s: float
    """Seconds for each case, after the import of the framework."""
    tier: Tier = "standard"
    """The quickest tier that includes it."""
    strategy: Strategy = "mirrored"
    framework: Framework = "tensorflow"
    typical_s: float = 5.0
    """Seconds for all cases in sequence on two CPU replicas, without the import."""
    pair_s: float = 0.0
    """Additional seconds for each pair of three replicas or more, measured on CPU replicas."""
    settings: tuple[tuple[str, str | float | None], ...] = ()
    """Additional settings for the cases, by name. A parameter of a check that judges this scenario, with the same name,
    replaces its value."""
    lasts: str = ""
    """The setting that is the number of seconds by which it prolongs each case, if there is one."""
    needs_options: str = ""
    """The command whose options say what it trains. Without them it is left out; empty if it needs none."""

    def with_settings(self, parameters: Mapping[str, Any]) -> "Scenario":
        """The scenario with those parameters that are settings of it, and the deadline that they need."""
        changed = {name: parameters[name] for name, _ in self.settings if name in parameters}
        if not changed:
            return self
        settings = {**dict(self.settings), **changed}
        longer = float(settings.get(self.lasts) or 0) - float(dict(self.settings).get(self.lasts) or 0)
        return replace(self, settings=tuple(settings.items()), deadline_s=self.deadline_s + max(0.0, longer))


@record
class AddedTraining:
    """A scenario that the options of a plugin ask for (entry point ``kdoctor.options``)."""

    scenario: Scenario
    """With the settings from the options."""
    options: str
    """How the history names a run with it, such as ``--model jobs.train:build``."""
    folder: Path | None = None
    """The folder that its modules are imported from, before installed ones."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that the job's own code sets, so that they are set for the whole run."""
