"""From the options to the facts: what the commands that examine a machine share."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kdoctor.checklist.for_scenarios import with_own_model
from kdoctor.checklist.load import load_checklist
from kdoctor.checklist.plan import plan, scenarios_to_run
from kdoctor.checklist.resolve import Checklist
from kdoctor.cli.stderr import complain, show
from kdoctor.engine.catalog import Catalog
from kdoctor.engine.judge import FactTable, PlannedCheck
from kdoctor.errors import UsageError
from kdoctor.facts import SmokeRuns
from kdoctor.output import write_atomically
from kdoctor.probes.probe import Context, Probe
from kdoctor.probes.process.child import Children
from kdoctor.probes.target import choose_target
from kdoctor.run.progress import progress
from kdoctor.run.session import Examination, Training
from kdoctor.smoke.own_model import DEFAULT_STEPS, OWN_DEADLINE_S, OWN_MODEL, OwnJob
from kdoctor.snapshot.document import Snapshot, dumps, load


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What the options ask for."""

    checklist: str
    select: Sequence[str] = ()
    skip: Sequence[str] = ()
    smoke: bool = True
    own_model: bool = False
    """Whether the user's own model and data are judged, too."""

    def plan(self, catalog: Catalog) -> tuple[Checklist, tuple[PlannedCheck, ...]]:
        """The checklist, and its checks as this run wants them."""
        chosen = load_checklist(self.checklist, catalog)
        if self.own_model:
            chosen = with_own_model(chosen, catalog)
        return chosen, plan(chosen, catalog, select=self.select, skip=self.skip, smoke=self.smoke)


@contextmanager
def examination(probes: Sequence[Probe], python: str | None, timeout: float) -> Iterator[tuple[Examination, str]]:
    """An examination of this machine whose probes are already at work, while the caller reads the checklist.

    With it, the target in words, for when its facts cannot be had. Leaving the context ends every child.
    """
    # A batch system ends a job by SIGTERM: then, too, the children must end and what is known be printed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    children = Children()
    target = choose_target(python, os.environ, children)
    context = Context(python=target.python, chosen_by=target.chosen_by, environ=dict(os.environ), children=children)
    with progress() as shown:
        begun = Examination(probes, context, deadline_s=timeout, note=shown.note)
        try:
            begun.start()
            yield begun, f"{target.python} (chosen by: {target.chosen_by})"
        finally:
            children.end_all()


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What was read of a machine, this one or a recorded one."""

    facts: FactTable
    target: str
    """The interpreter in words, for where the facts do not name it."""
    interrupted: bool = False


def see(
    catalog: Catalog,
    snapshot: Path | None,
    python: str | None,
    timeout: float,
    wanted: Sequence[Training] = (),
) -> Seen:
    """Read the snapshot, if one is named, otherwise this machine, with the trainings that are wanted.

    Raises:
        KeyboardInterrupt: the user ended the reading of this machine before any training: a half of it says nothing.
    """
    if snapshot:
        return Seen(facts=recorded(snapshot, catalog), target=f"recorded in {snapshot}")
    with examination(catalog.probes, python, timeout) as (examined, target):
        examined.run(list(wanted))
    if examined.interrupted and not wanted:
        raise KeyboardInterrupt
    return Seen(facts=examined.facts, target=target, interrupted=examined.interrupted)


def trainings(
    checklist: Checklist, planned: Sequence[PlannedCheck], replicas: int | None, own: OwnJob | None = None
) -> list[Training]:
    """The trainings that the plan waits for; ``replicas`` puts all of them on logical CPU devices.

    The scenario of the user's own model is one of them only if that is named (``own``).
    """
    return [
        Training(
            scenario=own.of(entry.scenario) if own and entry.scenario.id == OWN_MODEL else entry.scenario,
            replicas=replicas or (None if entry.replicas == "gpus" else entry.replicas),
        )
        for entry in scenarios_to_run(checklist, planned)
        if own or entry.scenario.id != OWN_MODEL
    ]


def recorded(path: Path, catalog: Catalog) -> FactTable:
    """The facts of a recorded snapshot."""
    recorded = load(path, catalog.fact_groups)
    for note in recorded.notes:
        complain(f"kdoctor: {path}: {note}")
    return recorded.facts


def save(path: Path | None, facts: FactTable) -> None:
    """Write a snapshot to a file, or to stdout."""
    text = dumps(Snapshot.now(facts))
    if path:
        write_atomically(path, text)
    else:
        show(text)


def own_job(
    model: str | None,
    data: str | None,
    steps: int | None,
    steps_per_epoch: int | None,
    deadline_s: float | None,
    *,
    snapshot: Path | None = None,
) -> OwnJob | None:
    """The model and the data that the options name, if they do.

    Raises:
        UsageError: one of the two is missing, a name is malformed, or a snapshot is judged.
    """
    if model is None and data is None:
        return None

    if model is None or data is None:
        raise UsageError("--model and --data go together", hint="Name two functions: --model job:build --data job:read")
    if snapshot:
        raise UsageError("--model trains and --snapshot only judges: they do not go together")
    return OwnJob(
        model=model,
        data=data,
        steps=DEFAULT_STEPS if steps is None else steps,
        steps_per_epoch=steps_per_epoch,
        deadline_s=OWN_DEADLINE_S if deadline_s is None else deadline_s,
    )


def has_own_model(facts: FactTable) -> bool:
    """Whether these facts hold what was found of somebody's own model."""
    runs = facts.get(SmokeRuns)
    return isinstance(runs, SmokeRuns) and OWN_MODEL in runs.runs
