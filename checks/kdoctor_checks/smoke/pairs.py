from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import fields
from statistics import median

from kdoctor.facts import Gpus, SmokeCase, SmokePair, SmokeRun, Unavailable
from kdoctor.model import Evidence, Outcome, Unjudged
from kdoctor.text.lists import counted
from kdoctor_checks.smoke._cases import describe_end
from kdoctor_checks.smoke._fault_location import FaultReporter, Pair
from kdoctor_checks.smoke._judging import did_not_finish, evidence, requested_replicas, unknown, weights_problem
from kdoctor_checks.smoke._replica_gpus import ReplicaGpus, replica_gpus
from kdoctor_checks.smoke._trained import trained

_MIN_COMPARED = 2
"""Other pairs of its topology level that a pair needs to be called slow."""


@trained("smoke.pairs", replicated=False, finished=False)
def pairs(
    run: SmokeRun, case: SmokeCase, tolerance: float, gpus: Gpus | Unavailable, *, slowest_share: float = 0.5
) -> Iterator[Outcome]:
    """Every pair of replicas trains correctly, all-reduces exactly and keeps pace.

    Why: one bad link or GPU stops or corrupts training on all GPUs, and training on all of them does not show which
    one. If all bad pairs share a GPU and the pairs without it are good, that GPU is at fault. If only one pair is bad,
    the link between its GPUs is at fault. A pair much slower than others of its topology level (``slowest_share`` of
    their median) slows down all. Over CPU devices the speed is only evidence.
    Remedy: exclude the GPU or inspect the link that the finding names.
    Sources:
        https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
        https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
    """
    if case.outcome != "trained":
        yield did_not_finish(run, case)
    if case.outcome == "trained" or any(pair.outcome != "not-tested" for pair in case.pairs):
        yield from _PairsJudge(run, case, replica_gpus(case, gpus), tolerance, slowest_share).outcomes()


class _PairsJudge:
    """Judges the pairs of one run."""

    def __init__(
        self, run: SmokeRun, case: SmokeCase, replicas: ReplicaGpus, tolerance: float, slowest_share: float
    ) -> None:
        self._run = run
        self._case = case
        self._tolerance = tolerance
        self._slowest_share = slowest_share
        self._tested = {(pair.first, pair.second): pair for pair in case.pairs if pair.outcome != "not-tested"}
        self._levels = {ends: level for ends in self._tested if (level := replicas.level(*ends)) is not None}
        self._reporter = FaultReporter(replicas, self._levels, kind=run.devices_kind)

    def outcomes(self) -> Iterator[Outcome]:
        """Bad pairs, slow pairs, those that were not tested, and good pairs."""
        problems = {ends: problem for ends, pair in self._tested.items() if (problem := self._problem(pair))}
        good = {ends: pair for ends, pair in self._tested.items() if ends not in problems}
        expected = "each pair trains like one CPU, and its all-reduce is exact"
        yield from self._reporter.findings(problems, good.keys(), "bad", expected)
        compared, slow = self._slow(good)
        expected = "each pair is as fast as the others of its level"
        yield from self._reporter.findings(slow, compared - slow.keys(), "slow", expected)
        yield from self._untested(good)
        yield from self._evidence({ends: pair for ends, pair in good.items() if ends not in slow})

    def _problem(self, pair: SmokePair) -> str | None:
        """What is wrong with a pair."""
        if pair.outcome != "trained":
            return describe_end(_as_case(pair))
        if pair.weights is None:
            return "its weights were not read"
        problem = weights_problem(pair.weights)
        if problem is None and pair.weights.mirrored and pair.weights.replicas_agree is None:
            return "whether the replicas hold equal weights was not read"
        return problem.observed if problem else self._difference(pair)

    def _difference(self, pair: SmokePair) -> str | None:
        """How a pair differs from one CPU, or its all-reduce from the exact sum."""
        if pair.weight_deviation is None:
            return "weights differ from one CPU's by NaN or infinity"
        if pair.weight_deviation > self._tolerance:
            return (
                f"weights differ from one CPU's by up to {pair.weight_deviation:.2g}, above the tolerance of "
                f"{self._tolerance:g}"
            )
        if pair.wrong_values is None:
            return "its large all-reduce was not compared"
        return (
            f"{counted(pair.wrong_values, 'wrong value')} in an all-reduce of {_size(pair)}"
            if pair.wrong_values
            else None
        )

    def _slow(self, good: Mapping[Pair, SmokePair]) -> tuple[set[Pair], dict[Pair, str]]:
        """The pairs that can be compared with others of their level, and those of them that are much slower."""
        compared: set[Pair] = set()
        slow: dict[Pair, str] = {}
        for level, speeds in self._speeds(good).items():
            if len(speeds) <= _MIN_COMPARED:
                continue
            compared |= speeds.keys()
            for ends, speed in speeds.items():
                usual = median(other for others, other in speeds.items() if others != ends)
                if speed < self._slowest_share * usual:
                    slow[ends] = f"{_gbs(speed)} GB/s, median of the other {level} pairs {_gbs(usual)} GB/s"
        return compared, slow

    def _speeds(self, good: Mapping[Pair, SmokePair]) -> dict[str, dict[Pair, float]]:
        """Bytes per second by topology level; empty over CPU devices."""
        speeds: dict[str, dict[Pair, float]] = defaultdict(dict)
        for ends, pair in good.items():
            if ends in self._levels and pair.bytes_per_s is not None and self._run.devices_kind == "gpu":
                speeds[self._levels[ends]][ends] = pair.bytes_per_s
        return speeds

    def _untested(self, good: Mapping[Pair, SmokePair]) -> Iterator[Unjudged]:
        """What was requested but not tested."""
        requested, made = requested_replicas(self._run), len(self._case.devices)
        if requested is None or made < requested:
            reason = f"TensorFlow made {made} of {requested or 'an unknown number of'} replicas"
            yield unknown(self._case, reason)
        total, untested = len(self._case.pairs), len(self._case.pairs) - len(self._tested)
        if untested or not total:
            yield unknown(f"{untested} of {counted(total, 'pair')}", "not tested, because the time was up")
        unknown_level = [ends for ends in good if ends not in self._levels]
        if unknown_level and self._run.devices_kind == "gpu":
            reason = "the links between their GPUs are not known, so speeds cannot be compared"
            yield unknown(f"speed of {counted(len(unknown_level), 'pair')}", reason)

    def _evidence(self, good: Mapping[Pair, SmokePair]) -> Iterator[Evidence]:
        """The good pairs, in one line per topology level."""
        levels: dict[str, list[SmokePair]] = defaultdict(list)
        for ends, pair in good.items():
            levels[self._levels.get(ends, self._run.devices_kind)].append(pair)
        for level, tested in levels.items():
            deviation = max(pair.weight_deviation or 0.0 for pair in tested)
            timed = sorted((pair.bytes_per_s, self._reporter.pair_name(pair)) for pair in tested if pair.bytes_per_s)
            speed = f" at {_gbs(timed[0][0])} to {_gbs(timed[-1][0])} GB/s" if timed else ""
            slowest = f"; slowest pair {timed[0][1]}" if len(timed) > 1 else ""
            observed = (
                f"weights within {deviation:.2g} of one CPU; {_size(tested[0])} all-reduced exactly{speed}{slowest}"
            )
            yield evidence(f"{counted(len(tested), 'pair')} ({level})", observed)


def _gbs(bytes_per_s: float) -> str:
    return f"{bytes_per_s / 1e9:.3g}"


def _size(pair: SmokePair) -> str:
    return f"{(pair.message_bytes or 0) / 2**20:.0f} MiB"


def _as_case(pair: SmokePair) -> SmokeCase:
    """The pair as a case, to describe how it ended; without its seconds, so that equal problems are listed once."""
    shared = {field.name for field in fields(SmokeCase)} & {field.name for field in fields(SmokePair)} - {"seconds"}
    return SmokeCase(name="pair", **{name: getattr(pair, name) for name in shared})
