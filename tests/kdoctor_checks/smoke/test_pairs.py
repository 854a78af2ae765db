from collections.abc import Mapping
from itertools import combinations
from typing import Any

from syrupy.assertion import SnapshotAssertion

from helpers.cases import cases
from helpers.facts import gpus, pair, pairs_run, smoke_case, smoke_run
from helpers.rows import fails, judged, passes, skips, table, unknown
from kdoctor.engine.report import Result
from kdoctor.facts import FactGroup, GpuPair, Weights
from kdoctor.model import Severity

Pairs = Mapping[tuple[int, int], dict[str, Any]]
HUNG: dict[str, Any] = {"outcome": "timed-out", "phase": "train", "steps": 3, "seconds": 40.0}
AUTOGRAPH = 'in user code:\n\n    File "/x/by_hand.py", line 70, in step  *\n        return reduce(1)\n\n    no\n'
NOT_TESTED: dict[str, Any] = {"outcome": "not-tested"}
LINK = "GPU 1 - GPU 2 (NV18)"


def machine(
    replicas: int = 4, changed: Pairs | None = None, *, levels: Pairs | None = None, **changes: Any
) -> tuple[FactGroup, ...]:
    """A run on a machine with NVSwitches, or with the given pair levels."""
    ends = combinations(range(replicas), 2)
    joints = tuple(pair(*two, **(levels[two] if levels else {})) for two in ends)
    return pairs_run(replicas, dict(changed or {}), **changes), gpus(replicas, pairs=joints)


def of_gpu(index: int, replicas: int, change: dict[str, Any] = HUNG) -> Pairs:
    return {ends: change for ends in combinations(range(replicas), 2) if index in ends}


def hung(*pairs: tuple[int, int]) -> Pairs:
    return dict.fromkeys(pairs, HUNG)


def over(level: str, far: str, *pairs: tuple[int, int], replicas: int = 3) -> Pairs:
    """These pairs are on the first level, and the others on the second."""
    ends = combinations(range(replicas), 2)
    return {two: {"nvlinks": 0, "level": level if two in pairs else far} for two in ends}


def all_of(replicas: int) -> list[tuple[int, int]]:
    return list(combinations(range(replicas), 2))


ACROSS = [(0, 2), (0, 3), (1, 2), (1, 3)]
UNREAD = tuple(GpuPair(first=a, second=b, level=None, error="x") for a, b in all_of(3))
ENDED = {ends: NOT_TESTED for ends in all_of(4) if ends > (1, 2)}
UNTESTED = dict.fromkeys(all_of(3), NOT_TESTED)
ONE_CPU = "weights within 6e-08 of one CPU; "
BAD = (
    (HUNG, "hung"),
    ({"outcome": "died", "signal": "SIGSEGV", "phase": "all-reduce"}, "SIGSEGV"),
    ({"outcome": "raised", "error_type": "InternalError", "error_message": "NCCL"}, "InternalError"),
    ({"outcome": "raised", "error_type": "TypeError", "error_message": AUTOGRAPH}, "TypeError in phase all-reduce: no"),
    ({"weight_deviation": 0.2}, "0.2, above the tolerance of 0.0001"),
    ({"weight_deviation": None}, "one CPU's by NaN or infinity"),
    ({"weights": None}, "not read"),
    ({"weights": Weights(variables=4, mirrored=4, nonfinite=("out/kernel",), replicas_agree=True)}, "out/kernel"),
    ({"wrong_values": 7}, "7 wrong values"),
    ({"wrong_values": None}, "not compared"),
)
UNREAD_AGREEMENT = {"weights": Weights(variables=4, mirrored=4, nonfinite=(), replicas_agree=None)}
REORDERED = ("0000:40:00.0", "0000:30:00.0", "0000:20:00.0", "0000:10:00.0")
OF_CPUS = {"devices_kind": "cpu"}

test_pairs = table(
    "smoke.pairs",
    Severity.ERROR,
    # The order of TensorFlow may differ from the driver's.
    fails(*machine(4, of_gpu(0, 4), bus_ids=REORDERED), of=["GPU 3 (0000:40:00.0)"]),
    *(
        fails(*machine(4, {(1, 2): change}), text, "other 5 pairs", "nvidia-smi nvlink -s -i 1", of=[LINK])
        for change, text in BAD
    ),
    fails(*machine(2, {(0, 1): UNREAD_AGREEMENT}), "whether the replicas hold equal weights was not read"),
    *(
        fails(*machine(replicas, hung(*bad)), f"fail GPU 1 (0000:20:00.0): {stated}")
        for replicas, bad, stated in (
            (3, ((0, 1), (1, 2)), "2 of its 2 pairs are bad, the 1 pair without it is not"),
            (4, ((0, 1), (1, 2)), "2 of its 3 pairs are bad, the 3 pairs without it are not"),
            (4, ((0, 1), (1, 2), (1, 3)), "3 of its 3 pairs are bad, the 3 pairs without it are not"),
        )
    ),
    fails(*machine(3, hung((0, 1))), "  bad, while other pairs are not."),
    fails(*machine(3, hung(*all_of(3))), "  every tested pair is bad.", of=["all 3 pairs"]),
    fails(*machine(3, hung((0, 1), (1, 2))), "  its pairs are bad, those without it are not."),
    fails(
        *machine(3, hung((0, 2), (1, 2)), levels=over("PIX", "SYS", (0, 1))),
        "All bad pairs are SYS and no other pair is, so the SYS path may be the cause",
    ),
    fails(*machine(3, hung((0, 2), (1, 2))), unsaid="All bad pairs"),
    fails(
        *machine(4, hung(*ACROSS), levels=over("SYS", "PIX", *ACROSS, replicas=4)),
        "2 pairs of other levels",
        of=["pairs over SYS"],
    ),
    fails(*machine(4, hung((0, 1), (2, 3))), of=["2 of 6 pairs"]),
    fails(smoke_run("smoke.pairs", 4, *pairs_run(4, dict(of_gpu(1, 4))).cases, **OF_CPUS), gpus(4), explained_by=[""]),
    passes(  # two pairs of a level are not compared
        *machine(3, {(0, 1): {"bytes_per_s": 1e9}}, levels=over("SYS", "PIX", (1, 2))),
        "; slowest pair GPU 0 - GPU 1.",
        "128 MiB all-reduced exactly at 300 to 300 GB/s.",
        of=2,
    ),
    fails(
        *machine(4, {(2, 3): {"bytes_per_s": 1e9}}, levels=over("PIX", "SYS", (0, 1), replicas=4)),
        "fail GPU 2 - GPU 3 (SYS): 1 GB/s, median of the other SYS pairs 300 GB/s",
    ),
    passes(
        smoke_run("smoke.pairs", 3, *pairs_run(3, {(0, 1): {"bytes_per_s": 1.0}}, bus_ids=()).cases, **OF_CPUS),
        of=["3 pairs (cpu)"],
    ),
    unknown(pairs_run(3), "speed of 3 pairs: "),
    fails(pairs_run(3, dict(of_gpu(1, 3))), of=["GPU:1 (0000:20:00.0)"]),
    unknown(*machine(4, {(0, 1): NOT_TESTED, (2, 3): NOT_TESTED}), "2 of 6 pairs: not tested"),
    unknown(pairs_run(4, pairs=()), gpus(4)),
    unknown(smoke_run("smoke.pairs", 4, *pairs_run(3).cases), gpus(4), "3 of 4 replicas"),
    fails(
        *machine(4, {**ENDED, (0, 1): HUNG}, outcome="timed-out", phase="pair 5 of 6 (GPU:1 - GPU:3)"),
        of=["training alone", "GPU 0 - GPU 1 (NV18)"],
    ),
    fails(*machine(3, UNTESTED, outcome="died", signal="SIGSEGV"), of=["training alone"], unjudged=[]),
    unknown(*machine(3, UNTESTED), of=["3 of 3 pairs"]),
    skips(
        smoke_run("smoke.pairs", 2, smoke_case("alone", 2, outcome="skipped", skip_reason="here: 2 replicas")),
        reason="here: 2 replicas",
    ),
    unknown(smoke_run("smoke.pairs", 4, smoke_case("another"), failure="the child died")),
    unknown(pairs_run(3), gpus(3, pairs=UNREAD)),
    passes(*machine(2), f": {ONE_CPU}128 MiB all-reduced exactly at 300 to 300 GB/s."),
    passes(
        *machine(3, {(0, 1): {"weight_deviation": 0.0}, (0, 2): {"bytes_per_s": 290e9}}),
        ": weights within 6e-08 of one CPU",
        "at 290 to 300 GB/s; slowest pair GPU 0 - GPU 2.",
        of=1,
    ),
    unknown(
        smoke_run("smoke.pairs", 3, *pairs_run(3).cases, replicas_requested=None, gpus_seen=None),
        gpus(3),
        "TensorFlow made 3 of an unknown number of replicas",
    ),
)


def test_gpu_whose_pairs_all_hang_is_named_with_address_and_uuid(screen: SnapshotAssertion) -> None:
    (found,) = judged("smoke.pairs", *machine(8, of_gpu(5, 8))).findings
    assert found.finding.subject == "GPU 5 (0000:60:00.0)"
    assert found.finding.observed == screen
    assert "nvidia-smi -q -i 0000:60:00.0" in found.finding.remedy.look
    assert found.finding.remedy.commands == ("sudo reboot",)
    assert "gpu.responding" in found.finding.explained_by


@cases(
    ({}, "nvidia-smi nvlink -s -i 1 "),
    ({"nvlinks": 0, "level": "PIX"}, "sudo lspci -vv -s 0000:20:00.0 "),
    (None, "sudo lspci -vv -s 0000:20:00.0 "),
    ids=["NVLink", "PCIe", "unknown"],
)
def test_link_is_inspected_with_its_tool(link: dict[str, Any] | None, look: str) -> None:
    links = () if link is None else tuple(pair(*ends, **link) for ends in all_of(3))
    result: Result = judged("smoke.pairs", pairs_run(3, {(1, 2): HUNG}), gpus(3, pairs=links))
    commands = result.findings[0].finding.remedy.look
    assert [command.startswith(look) for command in commands] == [False, True, False, False]
    assert len({command.partition(" -")[0] for command in commands[1:3]}) == 1  # both GPUs with the same tool
