"""Whether every two replicas train and exchange gradients rightly when they are alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from statistics import median

from kdoctor.check import check
from kdoctor.facts import Gpus, SmokeCase, SmokePair, SmokeRun, Unavailable
from kdoctor.model import Evidence, Outcome, Severity, Unjudged
from kdoctor.text.lists import counted
from kdoctor_checks.smoke._accuse import Accuser
from kdoctor_checks.smoke._cases import TOLERANCE, did_not_finish, how_it_ended, name_of, replicas_asked
from kdoctor_checks.smoke._culprits import Pair
from kdoctor_checks.smoke._places import Places, places_of
from kdoctor_checks.smoke._strategies import each_case, weights_problem

_EQUALS = 2
"""So many others of its topology level a pair must have before it is called slow."""


@check("smoke.pairs", severity=Severity.ERROR, requires=["versions.tensorflow-installed"], scenario="smoke.pairs")
def pairs(
    run: SmokeRun, gpus: Gpus | Unavailable, *, tolerance: float = TOLERANCE, slowest_share: float = 0.5
) -> Iterator[Outcome]:
    """Every two replicas alone train as one CPU does, all-reduce without an error, and are as fast as their equals.

    Why: one bad link or GPU stops or spoils the training of all, and a training over all of them does not say which
    it is. If every bad pair shares a GPU and the pairs without it are good, it is that GPU; a single bad pair is the
    link between two good ones. A pair far slower than the others of its topology level (``slowest_share`` of their
    median) sets the pace of all. Over CPU devices the speed is evidence only.
    Remedy: leave the GPU out, or look at the link: the finding names it.
    Sources:
        https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
        https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
    """

    def judge(case: SmokeCase) -> Iterator[Outcome]:
        if case.outcome != "trained":
            yield did_not_finish(run, case)
        if case.outcome == "trained" or any(pair.outcome != "not-tested" for pair in case.pairs):
            yield from _Judge(run, case, places_of(case, gpus), tolerance, slowest_share).outcomes()

    yield from each_case(run, ("alone",), judge, spread=False)


class _Judge:
    """What is to be said of one run's pairs."""

    def __init__(self, run: SmokeRun, case: SmokeCase, places: Places, tolerance: float, slowest_share: float) -> None:
        self._run = run
        self._case = case
        self._tolerance = tolerance
        self._slowest_share = slowest_share
        self._tested = {_ends(pair): pair for pair in case.pairs if pair.outcome != "not-tested"}
        self._levels = {ends: level for ends in self._tested if (level := places.level(*ends)) is not None}
        self._accuse = Accuser(places, self._levels, kind=run.devices_kind)

    def outcomes(self) -> Iterator[Outcome]:
        """Bad pairs, slow ones, those that were not tested, and the good ones."""
        problems = {ends: self._problem(pair) for ends, pair in self._tested.items()}
        bad = {ends: problem for ends, problem in problems.items() if problem}
        good = {ends: pair for ends, pair in self._tested.items() if ends not in bad}
        yield from self._accuse.findings(bad, good.keys(), "bad", "trains as one CPU does, and all-reduces exactly")
        judged, slow = self._slow(good)
        yield from self._accuse.findings(slow, judged - slow.keys(), "slow", "is as fast as the others of its level")
        yield from self._missing(good)
        yield from self._evidence({ends: pair for ends, pair in good.items() if ends not in slow})

    def _problem(self, pair: SmokePair) -> str | None:
        """What is wrong with a pair."""
        if pair.outcome != "trained":
            return how_it_ended(_as_case(pair))
        problem = weights_problem(pair.weights) if pair.weights else "its weights were not read"
        if problem is None and (pair.weight_deviation is None or pair.weight_deviation > self._tolerance):
            far = "not finite" if pair.weight_deviation is None else f"up to {pair.weight_deviation:.2g}"
            problem = f"weights differ from one CPU's: {far} (tolerance {self._tolerance:g})"
        if problem is None and pair.wrong_values is None:
            problem = "its large all-reduce was not compared"
        if problem is None and pair.wrong_values:
            problem = f"{pair.wrong_values} values of an all-reduced message of {_size(pair)} are wrong"
        return problem

    def _slow(self, good: Mapping[Pair, SmokePair]) -> tuple[set[Pair], dict[Pair, str]]:
        """The pairs that have equals to be compared with, and those of them that are far slower, with the words."""
        judged: set[Pair] = set()
        slow: dict[Pair, str] = {}
        for level, speeds in self._speeds(good).items():
            for ends, speed in speeds.items():
                usual = median([other for them, other in speeds.items() if them != ends] or [0.0])
                if len(speeds) > _EQUALS:
                    judged.add(ends)
                    if speed < self._slowest_share * usual:
                        slow[ends] = f"{_gbs(speed)} GB/s, where its equals ({level}) have {_gbs(usual)}"
        return judged, slow

    def _speeds(self, good: Mapping[Pair, SmokePair]) -> dict[str, dict[Pair, float]]:
        """Bytes per second by topology level; over CPU devices there is none."""
        found: dict[str, dict[Pair, float]] = defaultdict(dict)
        for ends, pair in good.items():
            if ends in self._levels and pair.bytes_per_s is not None and self._run.devices_kind == "gpu":
                found[self._levels[ends]][ends] = pair.bytes_per_s
        return found

    def _missing(self, good: Mapping[Pair, SmokePair]) -> Iterator[Unjudged]:
        """What was asked for and not tested."""
        asked, found = replicas_asked(self._run), len(self._case.devices)
        if asked is None or found < asked:
            reason = f"TensorFlow made {found} of {asked or 'an unknown number of'} replicas"
            yield Unjudged(subject=name_of(self._case), reason=reason)
        total, left = len(self._case.pairs), len(self._case.pairs) - len(self._tested)
        if left or not total:
            yield Unjudged(subject=f"{left} of {total} pairs", reason="not tested: the time was over before their turn")
        unlike = [ends for ends in good if ends not in self._levels]
        if unlike and self._run.devices_kind == "gpu":
            reason = "what joins their GPUs is not known, so neither is which pairs are equals"
            yield Unjudged(subject=f"speed of {len(unlike)} pairs", reason=reason)

    def _evidence(self, good: Mapping[Pair, SmokePair]) -> Iterator[Evidence]:
        """The good ones in a line for each topology level."""
        levels: dict[str, list[SmokePair]] = defaultdict(list)
        for ends, pair in good.items():
            levels[self._levels.get(ends, self._run.devices_kind)].append(pair)
        for level, these in levels.items():
            deviation = max(pair.weight_deviation or 0.0 for pair in these)
            speeds = [pair.bytes_per_s for pair in these if pair.bytes_per_s is not None]
            speed = f" at {_gbs(min(speeds))} to {_gbs(max(speeds))} GB/s" if speeds else ""
            only = f"; the slowest is {self._accuse.name(min(these, key=_speed))}" if len(speeds) > 1 else ""
            observed = f"weights within {deviation:.2g} of one CPU; {_size(these[0])} all-reduced exactly{speed}{only}"
            yield Evidence(subject=f"{counted(len(these), 'pair')} ({level})", observed=observed)


def _ends(pair: SmokePair) -> Pair:
    return pair.first, pair.second


def _speed(pair: SmokePair) -> float:
    return pair.bytes_per_s or 0.0


def _gbs(bytes_per_s: float) -> str:
    return f"{bytes_per_s / 1e9:.3g}"


def _size(pair: SmokePair) -> str:
    return f"{(pair.message_bytes or 0) / 2**20:.0f} MiB"


def _as_case(pair: SmokePair) -> SmokeCase:
    """The pair as a case, whose end has words already; without its seconds, so that what is alike is told once."""
    return SmokeCase(
        name="pair",
        outcome="died" if pair.outcome == "not-tested" else pair.outcome,
        phase=pair.phase,
        finished=pair.finished,
        steps=pair.steps,
        error_type=pair.error_type,
        error_message=pair.error_message,
        exit_code=pair.exit_code,
        signal=pair.signal,
        stacks=pair.stacks,
        stderr_tail=pair.stderr_tail,
        log_lines=pair.log_lines,
    )
