"""Trains on groups of nodes through an engine: each node runs one worker of ``kdoctor smoke across-nodes``."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from kdoctor.engine.report import Conclusion
from kdoctor.model import Status
from kdoctor.text.lists import counted
from kdoctor.text.sanitize import clean
from kdoctor_fleet.launch.collect import Answer, Collection, Limits
from kdoctor_fleet.launch.engine import Engine
from kdoctor_fleet.node_report import SentReport
from kdoctor_fleet.pairs.schedule import Group, Trial, WorkerOutcome

SCENARIOS: Mapping[str, str] = {"tensorflow": "across-nodes", "jax": "across-nodes-jax"}
"""Framework to the scenario."""
_CHECKS = frozenset(f"smoke.{name}" for name in SCENARIOS.values())
_PORTS = 1000
"""Number of slots of two ports each, so that workers on one host and consecutive steps differ."""
_OVERHEAD_S = 120.0
"""What a worker needs besides its trainings: to log in, to read the machine, to import frameworks."""
_LATE = "no report within"
_NAMED = 3
_LONGEST = 300


@dataclass(kw_only=True)
class Runner:
    """Runs groups of nodes, as many at once as the fan-out allows."""

    engine: Engine
    program: Sequence[str]
    """How kdoctor is started on the nodes."""
    options: Sequence[str]
    """Of ``kdoctor smoke``."""
    address: Callable[[str], str]
    """The host under which the other nodes reach a node."""
    port: int
    """The first port."""
    frameworks: Sequence[str]
    limit_s: float
    """For each training."""
    node_s: float
    """For a node and a step, which is never more than its trainings need."""
    fan_out: int
    on_step: Callable[[], None] = lambda: None
    """Called about twice a second."""
    _used: int = field(default=0, init=False)

    def run(self, groups: Sequence[Group]) -> Iterator[Trial]:
        """Train each group; all at once as far as the fan-out allows. A group larger than that runs alone."""
        for wave in _waves(groups, self.fan_out):
            yield from self._run(wave)

    def _run(self, groups: Sequence[Group]) -> Iterator[Trial]:
        configs = {name: config for group in groups for name, config in self._configs(group).items()}
        sent: dict[str, SentReport] = {}
        collection = Collection(
            self.engine,
            lambda node, deadline_s: self._command(node, configs[node], deadline_s),
            Limits(fan_out=len(configs), node_s=self._limit_s, total_s=None),
            lambda node, content: sent.__setitem__(node, SentReport.model_validate_json(content)),
        )
        answers: dict[str, Answer] = {}
        with closing(collection.run(tuple(configs))) as found:
            for answer in found:
                if answer is not None:
                    answers[answer.node] = answer
                self.on_step()
        for group in groups:
            yield conclude_group(group, [_outcome(answers[name], sent.get(name)) for name in group])

    @property
    def _limit_s(self) -> float:
        return min(self.node_s, len(self.frameworks) * self.limit_s + _OVERHEAD_S)

    def _configs(self, group: Group) -> dict[str, str]:
        addresses = []
        for name in group:
            addresses.append(f"{self.address(name)}:{self.port + 2 * (self._used % _PORTS)}")
            self._used += 1
        return {
            name: json.dumps({"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}})
            for index, name in enumerate(group)
        }

    def _command(self, node: str, config: str, deadline_s: float) -> list[str]:
        limits = ("--case-timeout", f"{self.limit_s:.0f}", "--timeout", f"{max(deadline_s - 10, 1):.0f}")
        fixed = ("smoke", *(SCENARIOS[name] for name in self.frameworks), "--format", "json", "--no-history", *limits)
        return ["env", f"KDOCTOR_NODE={node}", f"TF_CONFIG={config}", *self.program, *fixed, *self.options]


def _waves(groups: Sequence[Group], fan_out: int) -> Iterator[list[Group]]:
    wave: list[Group] = []
    for group in groups:
        if wave and sum(map(len, wave)) + len(group) > fan_out:
            yield wave
            wave = []
        wave.append(group)
    if wave:
        yield wave


def _outcome(answer: Answer, sent: SentReport | None) -> WorkerOutcome:
    """What a node said, in the form that is kept."""
    if sent is None or answer.reason:
        hung = answer.reason.startswith(_LATE)
        return WorkerOutcome(node=answer.node, verdict="", problem=answer.reason, hung=hung, seconds=answer.seconds)
    busy = _busy(sent)
    if busy:
        return WorkerOutcome(node=answer.node, verdict=Conclusion.UNKNOWN.value, problem=busy, seconds=answer.seconds)
    ended = [item for item in sent.trainings if item.outcome not in ("trained", "skipped")]
    problems = [problem.headline for cause in sent.causes for problem in cause.problems]
    speeds = [item.measures.get("all_reduce_gbs") for item in sent.trainings]
    passed = sent.verdict is Conclusion.PASS
    return WorkerOutcome(
        node=answer.node,
        verdict=sent.verdict.value,
        problem="" if passed else clean(" ".join([*problems[:1], *([] if problems else [sent.verdict_reason])])),
        hung=any(item.outcome == "timed-out" for item in ended),
        phase=clean(ended[0].phase) if ended and ended[0].phase else None,
        stacks=ended[0].stacks if ended else None,
        gbs=next((speed for speed in speeds if speed is not None and speed > 0), None),
        seconds=round(answer.seconds, 1),
    )


def _busy(sent: SentReport) -> str:
    """Why a worker did not take part, if another process had its port. The others fail then."""
    skipped = [item.reason or "" for item in sent.results if item.id in _CHECKS and item.status is Status.SKIP]
    return next((clean(reason) for reason in skipped if "cannot be used" in reason), "")


def conclude_group(nodes: Group, workers: Sequence[WorkerOutcome]) -> Trial:
    """What the workers say together. If one was inconclusive, nothing was tested, whatever the others say."""
    failed = [one for one in workers if one.verdict in ("", Conclusion.FAIL.value)]
    unsure = [one for one in workers if one.verdict == Conclusion.UNKNOWN.value]
    said = unsure or sorted(failed, key=lambda one: one.hung)  # who waited says less
    speeds = [one.gbs for one in workers if one.gbs is not None]
    shown = "; ".join(f"{one.node}: {one.problem}" for one in said[:_NAMED])
    more = f"; and {counted(len(said) - _NAMED, 'more node')}" if len(said) > _NAMED else ""
    return Trial(
        nodes=nodes,
        outcome="untested" if unsure else "failed" if failed else "trained",
        problem=f"{shown[:_LONGEST]}{more}",
        hung=bool(failed) and not unsure and all(one.hung for one in failed),
        gbs=None if said else min(speeds, default=None),
        workers=tuple(workers),
    )
