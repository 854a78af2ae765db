"""One node's report in the form in which thousands of them fit into memory: equal parts are stored once."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from kdoctor.engine.report import Conclusion
from kdoctor.facts import Node
from kdoctor.model import Action, Severity, Status
from kdoctor_fleet.documents import SentCategory, SentCause, SentReport
from kdoctor_fleet.facts import FleetNode, JobConfig
from kdoctor_fleet.facts.fleet import Section

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True, kw_only=True)
class CheckLine:
    """The result of one check on one node."""

    id: str
    title: str
    status: Status
    severity: Severity
    reason: str = ""
    accepted: bool = False
    blocked: bool = False
    action: Action = Action.CONFIGURE
    """The kind of work that its first fix requires."""


@dataclass(frozen=True, kw_only=True)
class NodeRecord:
    """One node's report."""

    facts: FleetNode
    """What the checks of family ``cluster`` judge."""
    source: str
    """The file."""
    conclusion: Conclusion
    """The node's own verdict."""
    reason: str
    checks: tuple[CheckLine, ...]
    categories: tuple[SentCategory, ...]
    causes: tuple[SentCause, ...]

    @property
    def name(self) -> str:
        """The node's name."""
        return self.facts.name


class Shared:
    """Makes records. Equal parts of several reports are one object."""

    def __init__(self) -> None:
        self._known: dict[Hashable, object] = {}
        self._sections: dict[Hashable, Section] = {}
        self._clusters: dict[Hashable, Mapping[str, tuple[str, ...]]] = {}

    def record(self, sent: SentReport, name: str, source: str, asked_at: str = "") -> NodeRecord:
        """The record of a report.

        Args:
            sent: the report.
            name: of the node.
            source: the file.
            asked_at: when it was asked for, if it was.
        """
        node = sent.node and replace(sent.node, name=name, tf_config=None)
        sections = {self._once(key): self._section(section) for key, section in sent.facts.items()}
        facts = FleetNode(
            name=name,
            checklist=self._once(f"{sent.checklist.name}, version {sent.checklist.version}"),
            kdoctor=self._once(sent.kdoctor),
            sections=sections,
            node=node,
            job=self._job(sent.node),
            steps=_steps(sent),
            started_at=sent.started_at,
            asked_at=asked_at,
        )
        return NodeRecord(
            facts=facts,
            source=source,
            conclusion=Conclusion.UNKNOWN if sent.interrupted else sent.verdict,
            reason=self._once(sent.verdict_reason),
            checks=self._once(_lines(sent)),
            categories=self._once(sent.categories),
            causes=self._once(sent.causes),
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
        job = read_job(node.tf_config)
        key = (*job.cluster.items(),)
        return replace(job, cluster=self._clusters.setdefault(key, job.cluster))


def _lines(sent: SentReport) -> tuple[CheckLine, ...]:
    return tuple(
        CheckLine(
            id=result.id,
            title=result.title,
            status=result.status,
            severity=result.severity,
            reason=(result.reason or "") if result.status is Status.UNKNOWN else "",
            accepted=result.accepted is not None,
            blocked=result.blocked_by is not None,
            action=result.findings[0].remedy.action if result.findings else Action.CONFIGURE,
        )
        for result in sent.results
    )


def _steps(sent: SentReport) -> Mapping[str, float]:
    return {
        f"{item.scenario}/{item.case}, {item.replicas} x {item.devices}": item.step_s
        for item in sent.trainings
        if item.step_s is not None and item.step_s > 0 and item.outcome == "trained"
    }


def read_job(text: str) -> JobConfig:
    """TF_CONFIG as a job reads it."""
    try:
        config = json.loads(text)
    except (ValueError, RecursionError):
        return JobConfig(malformed="it is not JSON")
    cluster = config.get("cluster", {}) if isinstance(config, dict) else None
    if not isinstance(cluster, dict):
        return JobConfig(malformed="it is not an object with a cluster")
    for kind, addresses in cluster.items():
        if not isinstance(addresses, list) or not all(isinstance(address, str) for address in addresses):
            return JobConfig(malformed=f"cluster.{kind} is not a list of addresses")
    task = config.get("task")
    named = task if isinstance(task, dict) and {"type", "index"} <= task.keys() else None
    return JobConfig(
        cluster={kind: tuple(addresses) for kind, addresses in cluster.items()},
        task=f"{named['type']} {named['index']}" if named else None,
    )
