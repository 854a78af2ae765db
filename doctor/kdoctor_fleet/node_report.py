"""The report of a node as it is read, with bounded sizes, and as it is kept: thousands of them fit into memory.

What a node sends is data. Texts that are too long or too many make the file unusable. Control characters are escaped
before anything is shown.
"""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, model_validator

from kdoctor.documents import Part
from kdoctor.engine.exit_codes import EXIT_FAIL, EXIT_PASS, EXIT_UNKNOWN
from kdoctor.engine.report import Category, Cause, ChecklistName, Conclusion, Training
from kdoctor.facts import Node
from kdoctor.model import Rollback, Status
from kdoctor.records import record
from kdoctor_fleet.facts import FleetNode, JobConfig, NodeResult, Section

MOST_BYTES = 32 * 2**20
"""A report has about 100 kB. A file that is larger than this is not read."""

_SHORT_DIGEST = 8
"""Characters of a digest that are shown."""

T = TypeVar("T", bound=Hashable)


@record
class _Place(Node):
    """Only the file limits its TF_CONFIG, which names every node of the job."""

    __pydantic_config__ = ConfigDict(str_max_length=None)


def _reported(cause: Cause) -> Cause:
    if not cause.checks:
        raise ValueError("a cause without a check")
    # A fix is something to paste. ``results`` writes those that this kdoctor knows.
    return replace(cause, fix="", commands=(), look=(), rollback=Rollback.irreversible("see the reports of the nodes"))


def _computed(line: object) -> object:
    """A result without a pass that its own parts contradict: it needs evidence, and nothing that is wrong or unread."""
    if not isinstance(line, dict) or line.get("status") != Status.PASS.value:
        return line
    found = line.get("findings", [])
    parts = found if isinstance(found, list) else [found]
    counting = [item for item in parts if not (isinstance(item, dict) and item.get("hidden"))]
    if line.get("evidence") and not line.get("unjudged") and not counting:
        return line
    return {**line, "status": Status.UNKNOWN.value, "reason": "its report states no evidence, or contradicts it"}


def _each_once(results: tuple[NodeResult, ...]) -> tuple[NodeResult, ...]:
    twice = [check for check, number in Counter(line.id for line in results).items() if number > 1]
    if twice:
        raise ValueError(f"it has {twice[0]} twice")
    return results


def _asked(checklist: ChecklistName) -> str:
    content = checklist.expectations.removeprefix("sha256:")[:_SHORT_DIGEST]
    parts = (f"{checklist.name}, version {checklist.version}", content and f"({content})", checklist.options)
    return " ".join(part for part in parts if part)


_EXIT_CODES = {Conclusion.PASS: EXIT_PASS, Conclusion.FAIL: EXIT_FAIL, Conclusion.UNKNOWN: EXIT_UNKNOWN}


def _contradicted(sent: Mapping[str, Any]) -> Iterator[str]:
    """The parts of a report that its results contradict. Reports of older kdoctors lack some parts."""
    by_status = Counter(line["status"] for line in sent["results"])
    if any(by_status[status] != number for status, number in sent.get("counts", {}).items()):
        yield "counts"
    code = _EXIT_CODES[Conclusion(sent["verdict"])]
    if not sent.get("interrupted") and sent.get("exit_code", code) != code:
        yield "exit code"
    failed = {line["id"] for line in sent["results"] if line["status"] == Status.FAIL.value}
    named = (
        check for cause in sent.get("causes", ()) for key in ("checks", "explains") for check in cause.get(key, ())
    )
    if not failed.issuperset(named):
        yield "causes"
    ends: dict[str, set[str]] = {}
    for item in sent.get("trainings", ()):
        ends.setdefault(item["scenario"], set()).add(item["outcome"])
    passed = {line.get("scenario") for line in sent["results"] if line["status"] == Status.PASS.value} - {None}
    baselines = {note["id"] for note in sent.get("scenarios", ()) if note["kind"] == "baseline"} & passed
    if "trainings" in sent and (passed - set(ends) or any(ends[name] != {"trained"} for name in baselines)):
        yield "trainings"


def _compared(sent: object) -> object:
    """The report, with what its results contradict. What is not a report is refused by its schema."""
    try:
        parts = ", ".join(_contradicted(sent)) if isinstance(sent, dict) else ""
    except (AttributeError, KeyError, TypeError, ValueError):
        parts = "schema"
    return {**sent, "contradicted": parts} if isinstance(sent, dict) else sent


class SentReport(Part):
    """A report of ``kdoctor check --format json``. Reports of older kdoctors lack the last keys."""

    model_config = ConfigDict(str_max_length=40_000)

    _compares = model_validator(mode="before")(_compared)

    kdoctor: str
    verdict: Conclusion
    verdict_reason: str
    interrupted: bool = False
    target: str = ""
    checklist: ChecklistName
    started_at: str = ""
    results: Annotated[
        tuple[Annotated[NodeResult, BeforeValidator(_computed)], ...],
        Field(max_length=2_000),
        AfterValidator(_each_once),
    ]
    categories: Annotated[tuple[Category, ...], Field(max_length=100)] = ()
    causes: Annotated[tuple[Annotated[Cause, AfterValidator(_reported)], ...], Field(max_length=1_000)] = ()
    trainings: Annotated[tuple[Training, ...], Field(max_length=2_000)] = ()
    contradicted: str = ""
    """The parts that the results contradict."""
    node: _Place | None = None
    facts: Annotated[Mapping[str, Annotated[Mapping[str, str], Field(max_length=5_000)]], Field(max_length=50)] = {}


class Shared:
    """Keeps reports. Equal parts of several are one object."""

    def __init__(self) -> None:
        self._known: dict[Hashable, object] = {}
        self._sections: dict[Hashable, Section] = {}
        self._clusters: dict[Hashable, Mapping[str, tuple[str, ...]]] = {}

    def keep(self, sent: SentReport, name: str, source: str, asked_at: str = "") -> FleetNode:
        """The node of a report.

        Args:
            sent: the report.
            name: of the node.
            source: the file.
            asked_at: when it was asked for, if it was.
        """
        is_contradicted = bool(sent.contradicted) and sent.verdict is Conclusion.PASS
        reason = "its run was interrupted" if sent.interrupted else sent.verdict_reason
        return FleetNode(
            name=name,
            source=source,
            checklist=self._once(_asked(sent.checklist)),
            name_of_checklist=self._once(sent.checklist.name),
            expectations=self._once(sent.checklist.expectations),
            options=self._once(sent.checklist.options),
            python=self._once(sent.target.partition(" (")[0] if sent.target.startswith("/") else ""),
            kdoctor=self._once(sent.kdoctor),
            verdict=Conclusion.UNKNOWN if sent.interrupted or is_contradicted else sent.verdict,
            reason=self._once(f"its results contradict its {sent.contradicted}" if is_contradicted else reason),
            results=self._once(sent.results),
            categories=self._once(sent.categories),
            causes=self._once(sent.causes),
            sections={self._once(key): self._section(section) for key, section in sent.facts.items()},
            node=sent.node and replace(sent.node, name=name, tf_config=None),
            job=self._job(sent.node),
            steps={
                f"{item.scenario}/{item.case}, {item.replicas} x {item.devices}": item.step_s
                for item in sent.trainings
                if item.step_s is not None and item.step_s > 0 and item.outcome == "trained"
            },
            started_at=sent.started_at,
            asked_at=asked_at,
        )

    def _once(self, value: T) -> T:
        return self._known.setdefault(value, value)  # type: ignore[return-value] # a key is stored with itself

    def _section(self, section: Section) -> Section:
        key = (*section.items(),)
        known = self._sections.get(key)
        if known is None:
            known = self._sections[key] = {self._once(name): self._once(value) for name, value in section.items()}
        return known

    def _job(self, node: Node | None) -> JobConfig | None:
        if node is None or node.tf_config is None:
            return None
        job = JobConfig.read(node.tf_config)
        return replace(job, cluster=self._clusters.setdefault((*job.cluster.items(),), job.cluster))
