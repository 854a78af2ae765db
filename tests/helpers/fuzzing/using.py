"""What a fuzz target is, and what kdoctor does with the facts that it read."""

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random

from helpers.fuzzing.mutation import mutated
from helpers.locks import lock
from kdoctor.catalog.load import Catalog, load_catalog
from kdoctor.checklist.load import load_checklist
from kdoctor.checklist.plan import plan
from kdoctor.engine.report import Result
from kdoctor.facts import Facts, Gpus, Host, PciDevices
from kdoctor.lock.facts import recorded_facts
from kdoctor.matrix.load import load_matrix
from kdoctor.report.formats import FORMATS, render
from kdoctor.rollback.document import RollbackPlan
from kdoctor.rollback.installers import read_installation
from kdoctor.rollback.plan import plan_rollback
from kdoctor.rollback.render import as_script, as_text
from kdoctor.run.assemble import build_report
from kdoctor.run.plan import Plan
from kdoctor.run.session import Collected
from kdoctor.snapshot.document import Snapshot, dumps, loads
from kdoctor.snapshot.redaction import Redaction
from kdoctor.topology.advice import advise
from kdoctor.topology.choice import choose
from kdoctor.topology.json import document
from kdoctor.topology.layout import read_layout
from kdoctor.topology.render import write_topology
from kdoctor.topology.tree import grow

TODAY = dt.date(2026, 11, 1)
NOW = dt.datetime(2026, 11, 1, tzinfo=dt.timezone.utc)
REPOSITORY = Path(__file__).parents[3]


@dataclass(frozen=True, kw_only=True)
class Reader:
    """One kind of input."""

    seeds: Callable[[], Sequence[bytes]]
    run: Callable[[bytes, Path], None]
    """Reads the bytes, and uses what they mean. The folder is for files. UsageError is an answer."""
    mutate: Callable[[bytes, Random], bytes] = mutated


@cache
def catalog() -> Catalog:
    return load_catalog()


@cache
def shipped() -> Plan:
    """The largest shipped checklist, with every installed check."""
    found = load_checklist("multi-gpu-keras", catalog())
    return Plan(
        checklist=found, checks=plan(found, catalog()), rules=replace(found.rules(today=TODAY), matrix=load_matrix())
    )


class CheckCrashedError(Exception):
    """A check raised an exception, which a run reports as unknown."""


def refuse_crashes(results: Sequence[Result]) -> None:
    """Raise CheckCrashedError for the first check that raised an exception."""
    for result in results:
        for unjudged in result.unjudged:
            if unjudged.reason.startswith("the check raised"):
                raise CheckCrashedError(f"{result.id}: {unjudged.reason:.80}")


def use(facts: Facts) -> None:
    """Everything that kdoctor does with the facts of a machine, except for training on it."""
    collected = Collected(facts=facts, target="a snapshot", started_at=NOW, duration_s=1.0, from_snapshot=True)
    report = build_report(collected, shipped())
    refuse_crashes(report.results)
    for name in FORMATS:
        render(report, name)
    text = dumps(Snapshot.now(facts), Redaction(home="/home/ada", user="ada"))
    assert loads(text, catalog().fact_groups).facts.keys() == facts.keys()
    found = plan_rollback(lock(), recorded_facts(facts), read_installation(facts), "job.lock.yaml", "job")
    for form in (as_text, RollbackPlan.to_json, as_script):
        form(found)
    gpus, pci, host = facts.get(Gpus), facts.get(PciDevices), facts.get(Host)
    if isinstance(gpus, Gpus) and gpus.devices:
        layout = read_layout(gpus, pci if isinstance(pci, PciDevices) else None)
        sizes = [size for size in (1, 2) if size <= len(layout.usable)]
        choices = [(choice, advise(layout, choice)) for choice in (choose(layout, size) for size in sizes)]
        tree = grow(layout, host if isinstance(host, Host) else None)
        write_topology(layout, tree, choices)
        document(layout, tree, choices).to_json()
