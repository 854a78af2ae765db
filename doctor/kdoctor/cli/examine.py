"""From the options to the facts: what the commands that examine a machine share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kdoctor.cli.streams import complain, show

if TYPE_CHECKING:
    from kdoctor.catalog import Catalog
    from kdoctor.checklist import Checklist
    from kdoctor.examination import Examination
    from kdoctor.judge import FactTable, PlannedCheck


def load(checklist: str, plugins: list[str] | None) -> tuple[Catalog, Checklist]:
    """The catalog, and the checklist of that name or path."""
    from kdoctor.catalog import load_catalog
    from kdoctor.checklist import load_checklist

    catalog = load_catalog(plugins or ())
    return catalog, load_checklist(checklist, catalog)


def examine(
    catalog: Catalog,
    checklist: Checklist,
    planned: Sequence[PlannedCheck],
    python: str | None,
    replicas: int | None,
    timeout: float,
) -> tuple[Examination, str]:
    """Examine this machine; and the target in words, for when its facts cannot be had."""
    import os
    import signal

    from kdoctor.checklist import scenarios_to_run
    from kdoctor.collect.child import Children
    from kdoctor.collect.probe import Context
    from kdoctor.collect.target import choose_target
    from kdoctor.examination import Examination, Training
    from kdoctor.progress import progress

    # A batch system ends a job by SIGTERM: then, too, the children must end and what is known be printed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    children = Children()
    target = choose_target(python, os.environ, children)
    context = Context(python=target.python, chosen_by=target.chosen_by, environ=dict(os.environ), children=children)
    trainings = [
        Training(
            scenario=entry.scenario,
            replicas=replicas or (None if entry.replicas == "gpus" else entry.replicas),
        )
        for entry in scenarios_to_run(checklist, planned)
    ]
    with progress() as shown:
        examination = Examination(catalog.probes, context, deadline_s=timeout, note=shown.note)
        examination.run(trainings)
    return examination, f"{target.python} (chosen by: {target.chosen_by})"


def recorded(path: Path, catalog: Catalog) -> FactTable:
    """The facts of a recorded snapshot."""
    from kdoctor.snapshot import load

    recorded = load(path, catalog.fact_groups)
    for note in recorded.notes:
        complain(f"kdoctor: {path}: {note}")
    return recorded.facts


def save(path: Path | None, facts: FactTable) -> None:
    """Write a snapshot to a file, or to stdout."""
    from kdoctor.output import write_atomically
    from kdoctor.snapshot import Snapshot, dumps

    text = dumps(Snapshot.now(facts))
    if path:
        write_atomically(path, text)
    else:
        show(text)
