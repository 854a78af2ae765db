"""Constructed fleets: reports of healthy H100 nodes, and what a test plants in some of them."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from kdoctor.catalog.load import load_catalog
from kdoctor.errors import UsageError
from kdoctor.facts import Facts, Node
from kdoctor.report.json import make_document
from kdoctor.run.assemble import build_report
from kdoctor.run.collect import read_snapshot
from kdoctor.run.plan import Plan, RunOptions
from kdoctor_fleet.commands.fleet import app
from kdoctor_fleet.facts import Fleet, JobConfig, UnreadReport
from kdoctor_fleet.merge import Expectation, merge
from kdoctor_fleet.names import fold
from kdoctor_fleet.node_report import SentReport, Shared
from kdoctor_fleet.read import Gathered
from kdoctor_fleet.report import FleetReport
from kdoctor_fleet.testing import healthy_fleet

SNAPSHOT = Path(__file__).parents[3] / "doctor/kdoctor/testing/h100-node.json"
MERGED_AT = "2025-01-02T04:00:00+00:00"
STARTED_AT = "2025-01-02T03:04:05+00:00"

OF_KERAS_3 = ("versions.keras-features",)
"""Checks that fail with every release of Keras 3: a fleet without what a test plants must have no problem."""

FLEET = healthy_fleet()
Document = dict[str, Any]
Plant = Callable[[Document], None]
"""Changes the report of one node."""


def fleet(number: int, **changes: dict[str, Any]) -> Fleet:
    """The facts of that many healthy nodes.

    Args:
        number: of nodes.
        changes: by name of a node, fields that differ. ``sections`` are merged with the healthy ones.
    """
    nodes = []
    cluster = {"worker": tuple(f"{name}:2222" for name in names_of(number))}
    for index, name in enumerate(names_of(number)):
        base = FLEET.nodes[index % len(FLEET.nodes)]
        place = replace(base.node, name=name, rank=index, ranks=number) if base.node else None
        node = replace(base, name=name, node=place, job=JobConfig(cluster=cluster, task=f"worker {index}"))
        change = dict(changes.get(name, {}))
        for section, facts in change.pop("sections", {}).items():
            kept = {
                key: value for key, value in {**node.sections.get(section, {}), **facts}.items() if value is not None
            }
            node = replace(node, sections={**node.sections, section: kept})
        nodes.append(replace(node, **change))
    return replace(FLEET, nodes=tuple(nodes), fold=fold)


def report_of(change: Callable[[Facts], Facts] = lambda facts: facts, checklist: str = "multi-gpu-keras") -> Document:
    """The JSON report of the H100 node after a change of its facts."""
    catalog = load_catalog()
    options = RunOptions(checklist=checklist, smoke=False, use_lock=False, command="kdoctor check", skip=OF_KERAS_3)
    plan = options.plan(catalog)
    collected = read_snapshot(SNAPSHOT, catalog)
    facts = {**collected.facts, Node: Node(name="node", named_by="SLURMD_NODENAME", launcher="slurm", job="7")}
    report = build_report(replace(collected, facts=change(facts)), plan)
    document: Document = json.loads(make_document(report).model_dump_json(by_alias=True))
    document["started_at"] = STARTED_AT
    return document


@cache
def _healthy() -> Document:
    return report_of()


def healthy(name: str, rank: int = 0, ranks: int = 1) -> Document:
    """The report of a healthy node."""
    document = dict(_healthy())
    document["facts"] = {section: dict(facts) for section, facts in document["facts"].items()}
    document["trainings"] = [dict(training) for training in document["trainings"]]
    document["node"] = document["node"] | {"name": name, "rank": rank, "ranks": ranks}
    return document


def names_of(number: int) -> list[str]:
    """``node0001`` and so on."""
    return [f"node{index:04}" for index in range(1, number + 1)]


def fleet_of(number: int, planted: Mapping[int, Iterable[Plant]] | None = None) -> list[Document]:
    """The reports of that many nodes, numbered from 1, with changes in some of them."""
    reports = [healthy(name, rank, number) for rank, name in enumerate(names_of(number))]
    for index, plants in (planted or {}).items():
        for plant in plants:
            plant(reports[index - 1])
    return reports


def fact(section: str, name: str, value: str | None) -> Plant:
    """Another value of a fact; None removes it."""

    def plant(document: Document) -> None:
        if value is None:
            document["facts"][section].pop(name)
        else:
            document["facts"].setdefault(section, {})[name] = value

    return plant


def slower(factor: float) -> Plant:
    """Slower training steps."""

    def plant(document: Document) -> None:
        for training in document["trainings"]:
            if training["step_s"] is not None:
                training["step_s"] *= factor

    return plant


def replaced(other: Document) -> Plant:
    """Another report of the same node."""

    def plant(document: Document) -> None:
        kept = document["node"]
        document.clear()
        document |= other | {"node": kept}

    return plant


@cache
def fleet_plan(checklist: str = "fleet") -> Plan:
    """The checks over all nodes."""
    return RunOptions(checklist=checklist, use_lock=False, command="kdoctor fleet merge reports").plan(load_catalog())


def merged(documents: Iterable[Document], *, unread: Sequence[str] = (), **expectation: Any) -> FleetReport:
    """The report of the fleet and of these files, which could not be read, without the way over JSON."""
    shared = Shared()
    nodes = [
        shared.keep(SentReport.model_validate(document), document["node"]["name"], f"{document['node']['name']}.json")
        for document in documents
    ]
    files = [UnreadReport(source=source, reason="cut off") for source in unread]
    gathered = Gathered(nodes={node.name: node for node in nodes}, unread=files)
    return merge(gathered, Expectation(**expectation), fleet_plan(), MERGED_AT, 0.25)


def write(documents: Iterable[Document], folder: Path) -> Path:
    """A folder with a file for each report."""
    folder.mkdir(parents=True, exist_ok=True)
    for document in documents:
        (folder / f"{document['node']['name']}.json").write_text(json.dumps(document))
    return folder


def asked(*arguments: str | Path, stdin: str | None = None, code: int = 0) -> str:
    """What ``kdoctor fleet`` prints in this process, if it ends with this exit code."""
    done = CliRunner().invoke(app, list(map(str, arguments)), input=stdin)
    if isinstance(done.exception, UsageError):
        raise done.exception
    assert done.exit_code == code, (done.output, done.exception)
    return done.stdout
