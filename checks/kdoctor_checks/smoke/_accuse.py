"""Findings about pairs of GPUs: about one GPU, one link, one kind of link, or about all of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Literal

from kdoctor.facts import SmokePair
from kdoctor.model import Action, Finding, Remedy, Rollback
from kdoctor.text.lists import counted, some
from kdoctor_checks.smoke._culprits import Pair, culprit, level_explains
from kdoctor_checks.smoke._places import Places

_LOOKING = Rollback.nothing("the trainings and looking change nothing")
_ALL_VISIBLE = Rollback.to("all GPUs visible", "unset CUDA_VISIBLE_DEVICES")
_QUOTED = 3
"""Different things that are wrong, in a finding about many pairs."""


class Accuser:
    """Names what the bad pairs have in common."""

    def __init__(self, places: Places, levels: Mapping[Pair, str], *, kind: Literal["gpu", "cpu"]) -> None:
        self._places = places
        self._levels = levels
        self._kind = kind

    def name(self, pair: SmokePair) -> str:
        """The pair's name."""
        return self._places.pair_name(pair.first, pair.second)

    def findings(self, bad: Mapping[Pair, str], good: Collection[Pair], word: str, expected: str) -> Iterator[Finding]:
        """As few findings as say it.

        Args:
            bad: each bad pair, and what is wrong with it.
            good: those with which they are compared.
            word: what the bad ones are called.
            expected: what a pair should do.
        """
        if not bad:
            return
        found = culprit(bad, good, self._levels)
        many = f"the other {counted(len(good), 'pair')}"
        if found.pair:
            observed = f"{bad[found.pair]}; {many} that were tested {_are(len(good))} not {word}"
            yield self._finding(self._link(found.pair), observed, f"the pair {expected}", self._see_link(found.pair))
        elif found.gpus:
            for index in found.gpus:
                yield self._about_gpu(index, found.gpus, bad, good, word, expected)
        elif found.everything:
            observed = f"every one that was tested is {word}: {self._quoted(bad)}"
            yield self._finding(f"all {counted(len(bad), 'pair')}", observed, f"each pair {expected}", self._see_all())
        elif found.level:
            observed = (
                f"all {len(bad)} are {word}, and {many} of other levels {_are(len(good))} not: {self._quoted(bad)}"
            )
            subject = f"pairs over {found.level}"
            yield self._finding(subject, observed, f"each pair {expected}", self._see_all())
        else:
            observed = f"{word}, with no GPU and no level in common: {self._quoted(bad)}"
            subject = f"{len(bad)} of {counted(len(bad) + len(good), 'pair')}"
            yield self._finding(subject, observed, f"each pair {expected}", self._see_all())

    def _about_gpu(
        self,
        index: int,
        gpus: tuple[int, ...],
        bad: Mapping[Pair, str],
        good: Collection[Pair],
        word: str,
        expected: str,
    ) -> Finding:
        mine = {pair: words for pair, words in bad.items() if index in pair}
        of = len(mine) + sum(index in pair for pair in good)
        without = sum(not set(pair) & set(gpus) for pair in good)
        it = "it" if len(gpus) == 1 else "these GPUs"
        observed = (
            f"{len(mine)} of its {counted(of, 'pair')} {_are(len(mine))} {word}, "
            f"and the {counted(without, 'pair')} without {it} {_are(without)} not: {self._quoted(mine)}"
        )
        level = level_explains(bad, good, self._levels)
        if level:
            observed += f". All of them are {level} and no other pair is, so it may be the way there, too"
        gpu = self._places.gpus[index]
        observed = f"{gpu.uuid}: {observed}" if gpu and gpu.uuid else observed
        rollback = _ALL_VISIBLE if self._kind == "gpu" else _LOOKING
        expected = f"each of its pairs {expected}"
        return self._finding(self._places.names[index], observed, expected, self._see_gpu(index, gpus), rollback)

    def _finding(
        self, subject: str, observed: str, expected: str, remedy: Remedy, rollback: Rollback = _LOOKING
    ) -> Finding:
        return Finding(subject=subject, observed=observed, expected=expected, remedy=remedy, rollback=rollback)

    def _link(self, pair: Pair) -> str:
        level = self._levels.get(pair)
        return self._places.pair_name(*pair) + (f" ({level})" if level else "")

    def _quoted(self, bad: Mapping[Pair, str]) -> str:
        """What is wrong, and with which pairs; those of which the same is wrong together."""
        alike: dict[str, list[Pair]] = {}
        for pair, words in bad.items():
            alike.setdefault(words, []).append(pair)
        quoted = [
            f"{some(tuple(self._link(pair) for pair in pairs))}: {words}"
            for words, pairs in list(alike.items())[:_QUOTED]
        ]
        more = len(bad) - sum(len(pairs) for pairs in list(alike.values())[:_QUOTED])
        return "; ".join(quoted) + (f"; and {more} more" if more else "")

    def _see_gpu(self, index: int, gpus: tuple[int, ...]) -> Remedy:
        if self._kind == "cpu":
            return _PATCHED
        gpu = self._places.gpus[index]
        others = [other.uuid for place, other in enumerate(self._places.gpus) if other and place not in gpus]
        commands = ["sudo dmesg | grep -iE 'NVRM|Xid'"]
        commands += [f"nvidia-smi -q -i {gpu.bus_id or gpu.index}"] if gpu else []
        if others and all(others):
            commands.append(f"export CUDA_VISIBLE_DEVICES={','.join(uuid for uuid in others if uuid)}  # without it")
        return Remedy(
            summary="Leave it out to go on; read what the kernel logged about it and its counters, restart the machine "
            "once, and have the GPU or its slot looked at if it stays so.",
            action=Action.INSPECT_HARDWARE,
            commands=tuple(commands),
        )

    def _see_link(self, pair: Pair) -> Remedy:
        if self._kind == "cpu":
            return _PATCHED
        commands = ["nvidia-smi topo -m"]
        joint = self._places.joint(*pair)
        for gpu in filter(None, (self._places.gpus[index] for index in pair)):
            if joint and joint.nvlinks:
                commands.append(f"nvidia-smi nvlink -s -i {gpu.index} && nvidia-smi nvlink -e -i {gpu.index}")
            elif gpu.bus_id:
                commands.append(f"sudo lspci -vv -s {gpu.bus_id} | grep -E 'LnkSta:|UESta:|CESta:'")
        commands.append("export NCCL_P2P_DISABLE=1  # to find the cause, not to keep")
        return Remedy(
            summary="Each of the two is good with another GPU: look at what joins them. If the pair is good without "
            "peer-to-peer transfers, it is the link, its driver, PCIe ACS or the IOMMU.",
            action=Action.INSPECT_HARDWARE,
            commands=tuple(commands),
        )

    def _see_all(self) -> Remedy:
        if self._kind == "cpu":
            return _PATCHED
        return Remedy(
            summary="No one GPU explains it: look at what the bad pairs share, such as NCCL, the driver, a PCIe "
            "switch, ACS and the IOMMU, and try once without peer-to-peer transfers.",
            action=Action.CONFIGURE,
            commands=(
                "nvidia-smi topo -m",
                "export NCCL_DEBUG=INFO",
                "export NCCL_P2P_DISABLE=1  # to find the cause, not to keep",
            ),
        )


_PATCHED = Remedy(
    summary="The replicas are devices of one CPU, and no hardware is between them: look for what ended the process, "
    "for patched code, or reinstall TensorFlow and Keras.",
    action=Action.REINSTALL,
)


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
