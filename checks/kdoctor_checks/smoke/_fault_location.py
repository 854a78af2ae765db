"""Finds which GPU, link or topology level explains the bad ones among pairs of GPUs."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Literal

from kdoctor.commands.shell import quoted
from kdoctor.facts import SmokePair
from kdoctor.model import Action, Finding, Remedy, Rollback
from kdoctor.records import record
from kdoctor.text.lists import counted, some
from kdoctor_checks.smoke._judging import NO_ROLLBACK
from kdoctor_checks.smoke._replica_gpus import ReplicaGpus

Pair = tuple[int, int]

_MAX_PROBLEMS = 3
"""Different problems that a finding about many pairs lists."""

_KNOWN_FAULTS = (
    "gpu.responding",
    "gpu.ecc-errors",
    "gpu.sram-errors",
    "gpu.kernel-log",
    "gpu.clocks",
    "topology.nvlink",
    "topology.pcie-width",
)
"""The checks of one GPU that explain why its pairs are bad."""

_NO_P2P = "export NCCL_P2P_DISABLE=1  # for diagnosis only"

_COMMON_REMEDY = Remedy.configure(
    "Inspect what the bad pairs share (NCCL, the driver, a PCIe switch, ACS, the IOMMU), and try once without "
    "peer-to-peer transfers.",
    look=("nvidia-smi topo -m", "export NCCL_DEBUG=INFO", _NO_P2P),
)

_CPU_REMEDY = Remedy.reinstall(
    "All replicas are devices of one CPU. Find out what ended the process, look for patched code, or reinstall "
    "TensorFlow and Keras."
)


@record
class Fault:
    """What the bad pairs have in common. At most one field is set."""

    gpus: tuple[int, ...] = ()
    """GPUs that explain every bad pair, while the pairs without them are good."""
    pair: Pair | None = None
    """The only bad pair; both of its GPUs are good with others."""
    level: str | None = None
    """The topology level of all bad pairs and of no good pair."""
    everything: bool = False
    """No pair is good."""


def locate_fault(bad: Iterable[Pair], good: Iterable[Pair], levels: Mapping[Pair, str]) -> Fault:
    """What explains the bad pairs; no field is set if nothing does.

    A single bad pair of three GPUs or more is a link. A GPU is named only if at least two of its pairs are bad and
    some pair without it is good.
    """
    bad, good = set(bad), set(good)
    if not good:
        return Fault(everything=True)
    if len(bad) == 1:
        return Fault(pair=next(iter(bad)))
    good_gpus = {index for pair in good for index in pair}
    ends = [index for pair in bad for index in pair]
    never_good = {index for index in ends if ends.count(index) > 1 and index not in good_gpus}
    shared = {index for index in ends if all(index in pair for pair in bad)}
    for gpus in (never_good, shared):
        if gpus and all(set(pair) & gpus for pair in bad) and any(not set(pair) & gpus for pair in good):
            return Fault(gpus=tuple(sorted(gpus)))
    return Fault(level=common_level(bad, good, levels))


def common_level(bad: Iterable[Pair], good: Iterable[Pair], levels: Mapping[Pair, str]) -> str | None:
    """The topology level of all bad pairs, if no good pair has it."""
    found = {levels.get(pair) for pair in bad}
    (level,) = found if len(found) == 1 else (None,)
    return None if level is None or level in {levels.get(pair) for pair in good} else level


class FaultReporter:
    """Reports bad pairs in as few findings as possible: about a GPU, a link, a level, or all of them."""

    def __init__(self, replicas: ReplicaGpus, levels: Mapping[Pair, str], *, kind: Literal["gpu", "cpu"]) -> None:
        self._replicas = replicas
        self._levels = levels
        self._kind = kind

    def pair_name(self, pair: SmokePair) -> str:
        """The pair's name."""
        return self._replicas.pair_name(pair.first, pair.second)

    def findings(
        self, problems: Mapping[Pair, str], good: Collection[Pair], adjective: str, expected: str
    ) -> Iterator[Finding]:
        """Report the bad pairs.

        Args:
            problems: what is wrong with each bad pair.
            good: the pairs that they are compared with.
            adjective: describes a bad pair: ``bad``, ``slow``.
            expected: what every pair should do.
        """
        if not problems:
            return
        fault = locate_fault(problems, good, self._levels)
        if fault.gpus:
            for index in fault.gpus:
                yield self._gpu_finding(index, fault.gpus, problems, good, adjective, expected)
            return
        count, others = counted(len(problems), "pair"), counted(len(good), "pair")
        remedy, listed = _COMMON_REMEDY, self._list(problems)
        if fault.pair:
            subject, remedy = self._link_name(fault.pair), self._link_remedy(fault.pair)
            observed = f"{problems[fault.pair]}; the other {others} tested {_are(len(good))} not {adjective}"
        elif fault.everything:
            subject, observed = f"all {count}", f"every tested pair is {adjective} ({listed})"
        elif fault.level:
            subject = f"pairs over {fault.level}"
            observed = (
                f"all {len(problems)} are {adjective}, the {others} of other levels {_are(len(good))} not ({listed})"
            )
        else:
            subject = f"{len(problems)} of {counted(len(problems) + len(good), 'pair')}"
            observed = f"{adjective}, with no GPU and no topology level in common ({listed})"
        brief = f"{adjective}, while other pairs are not" if good else f"every tested pair is {adjective}"
        yield self._finding(subject, observed, expected, remedy, brief=brief)

    def _gpu_finding(
        self,
        index: int,
        gpus: tuple[int, ...],
        problems: Mapping[Pair, str],
        good: Collection[Pair],
        adjective: str,
        expected: str,
    ) -> Finding:
        bad = {pair: problem for pair, problem in problems.items() if index in pair}
        total = len(bad) + sum(index in pair for pair in good)
        without = sum(not set(pair) & set(gpus) for pair in good)
        observed = (
            f"{len(bad)} of its {counted(total, 'pair')} {_are(len(bad))} {adjective}, the {counted(without, 'pair')} "
            f"without {'it' if len(gpus) == 1 else 'these GPUs'} {_are(without)} not ({self._list(bad)})"
        )
        level = common_level(problems, good, self._levels)
        if level:
            observed += f". All bad pairs are {level} and no other pair is, so the {level} path may be the cause"
        gpu = self._replicas.gpus[index]
        observed += f"; its UUID is {gpu.uuid}" if gpu and gpu.uuid else ""
        remedy, brief = self._gpu_remedy(index), f"its pairs are {adjective}, those without it are not"
        return self._finding(
            self._replicas.names[index], observed, expected, remedy, brief=brief, explained_by=_KNOWN_FAULTS
        )

    def _finding(
        self,
        subject: str,
        observed: str,
        expected: str,
        remedy: Remedy,
        rollback: Rollback = NO_ROLLBACK,
        *,
        brief: str,
        explained_by: tuple[str, ...] = (),
    ) -> Finding:
        if self._kind == "cpu":
            remedy, rollback = _CPU_REMEDY, NO_ROLLBACK
        return Finding(
            subject=subject,
            observed=observed,
            expected=expected,
            remedy=remedy,
            rollback=rollback,
            brief=brief,
            explained_by=explained_by if self._kind == "gpu" else (),
        )

    def _link_name(self, pair: Pair) -> str:
        level = self._levels.get(pair)
        return self._replicas.pair_name(*pair) + (f" ({level})" if level else "")

    def _list(self, problems: Mapping[Pair, str]) -> str:
        """The problems and their pairs; pairs with the same problem together."""
        by_problem: dict[str, list[str]] = {}
        for pair, problem in problems.items():
            by_problem.setdefault(problem, []).append(self._link_name(pair))
        listed = list(by_problem.items())[:_MAX_PROBLEMS]
        more = len(problems) - sum(len(names) for _, names in listed)
        text = "; ".join(f"{some(names)}: {problem}" for problem, names in listed)
        return text + (f"; and {more} more" if more else "")

    def _gpu_remedy(self, index: int) -> Remedy:
        gpu = self._replicas.gpus[index]
        look = ["sudo dmesg | grep -iE 'NVRM|Xid'"]
        look += [f"nvidia-smi -q -i {quoted(gpu.selector)}"] if gpu else []
        return Remedy(
            summary="Exclude the GPU to continue. Read its kernel log and counters, restart the machine once, and have "
            "the GPU or its slot inspected if the fault remains.",
            action=Action.INSPECT_HARDWARE,
            commands=("sudo reboot",),
            look=tuple(look),
        )

    def _link_remedy(self, pair: Pair) -> Remedy:
        commands = ["nvidia-smi topo -m"]
        link = self._replicas.link(*pair)
        for gpu in filter(None, (self._replicas.gpus[index] for index in pair)):
            if link and link.nvlinks:
                commands.append(f"nvidia-smi nvlink -s -i {gpu.index} && nvidia-smi nvlink -e -i {gpu.index}")
            elif gpu.bus_id:
                commands.append(f"sudo lspci -vv -s {quoted(gpu.bus_id)} | grep -E 'LnkSta:|UESta:|CESta:'")
        return Remedy.inspect(
            "Inspect the link: each of the two GPUs works with another one. Try once without peer-to-peer transfers.",
            *commands,
            _NO_P2P,
        )


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
