from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from helpers.facts import gpus, pair, pairs_run, smoke_case, smoke_run
from kdoctor.engine.report import Result
from kdoctor.facts import GpuPair, Weights
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.pairs import pairs

HUNG: dict[str, Any] = {"outcome": "timed-out", "phase": "train", "steps": 3, "seconds": 40.0}
AUTOGRAPH = 'in user code:\n\n    File "/x/by_hand.py", line 70, in step  *\n        return reduce(1)\n\n    no\n'
NOT_TESTED: dict[str, Any] = {"outcome": "not-tested"}


def judge(
    replicas: int = 4,
    changed: dict[tuple[int, int], dict[str, Any]] | None = None,
    *,
    levels: Any = None,
    **changes: Any,
) -> Result:
    """The result for a machine with NVSwitches, or with the given pair levels."""
    joints = [pair(*ends, **(levels(*ends) if levels else {})) for ends in combinations(range(replicas), 2)]
    machine = gpus(replicas, pairs=tuple(joints))
    return compute_check(pairs, pairs_run(replicas, changed, **changes), machine)


def of_gpu(index: int, replicas: int, change: dict[str, Any]) -> dict[tuple[int, int], dict[str, Any]]:
    return {ends: change for ends in combinations(range(replicas), 2) if index in ends}


def test_good_pairs_pass_with_their_speed_per_level() -> None:
    result = judge(4, {(0, 3): {"bytes_per_s": 280e9}})
    assert (result.status, result.severity) == (Status.PASS, Severity.ERROR)
    assert [item.subject for item in result.evidence] == ["6 pairs (NV18)"]
    for part in ("6e-08", "128 MiB", "280 to 300 GB/s", "GPU 0 - GPU 3"):
        assert part in result.evidence[0].observed


def test_gpu_whose_pairs_all_hang_is_named_with_address_and_uuid(screen: SnapshotAssertion) -> None:
    result = judge(8, of_gpu(5, 8, HUNG))
    (finding,) = (item.finding for item in result.findings)
    assert finding.subject == "GPU 5 (0000:60:00.0)"
    assert finding.observed == screen
    assert "nvidia-smi -q -i 0000:60:00.0" in finding.remedy.look
    assert finding.remedy.commands == ("sudo reboot",)


def test_order_of_tensorflow_may_differ_from_the_drivers() -> None:
    addresses = ("0000:40:00.0", "0000:30:00.0", "0000:20:00.0", "0000:10:00.0")
    result = judge(4, of_gpu(0, 4, HUNG), bus_ids=addresses)
    assert result.findings[0].finding.subject == "GPU 3 (0000:40:00.0)"


@pytest.mark.parametrize(
    ("change", "decisive"),
    [
        (HUNG, "hung"),
        ({"outcome": "died", "signal": "SIGSEGV", "phase": "all-reduce"}, "SIGSEGV"),
        ({"outcome": "raised", "error_type": "InternalError", "error_message": "NCCL"}, "InternalError"),
        (
            {"outcome": "raised", "error_type": "TypeError", "error_message": AUTOGRAPH},
            "TypeError in phase all-reduce: no",
        ),
        ({"weight_deviation": 0.2}, "0.2, above the tolerance of 0.0001"),
        ({"weight_deviation": None}, "one CPU's by NaN or infinity"),
        ({"weights": None}, "not read"),
        (
            {"weights": Weights(variables=4, mirrored=4, nonfinite=("out/kernel",), replicas_agree=True)},
            "out/kernel",
        ),
        ({"wrong_values": 7}, "7 wrong values"),
        ({"wrong_values": None}, "not compared"),
    ],
)
def test_single_bad_pair_is_a_link(change: dict[str, Any], decisive: str) -> None:
    result = judge(4, {(1, 2): change})
    (finding,) = (item.finding for item in result.findings)
    assert finding.subject == "GPU 1 - GPU 2 (NV18)"
    assert decisive in finding.observed
    assert "other 5 pairs" in finding.observed
    assert any(command.startswith("nvidia-smi nvlink -s -i 1") for command in finding.remedy.look)


@pytest.mark.parametrize(
    ("replicas", "bad", "stated"),
    [
        (3, ((0, 1), (1, 2)), "2 of its 2 pairs are bad, the 1 pair without it is not"),
        (4, ((0, 1), (1, 2)), "2 of its 3 pairs are bad, the 3 pairs without it are not"),
        (4, ((0, 1), (1, 2), (1, 3)), "3 of its 3 pairs are bad, the 3 pairs without it are not"),
    ],
)
def test_pairs_of_a_gpu_are_counted(replicas: int, bad: tuple[tuple[int, int], ...], stated: str) -> None:
    (finding,) = (item.finding for item in judge(replicas, dict.fromkeys(bad, HUNG)).findings)
    assert finding.subject.startswith("GPU 1 ")
    assert finding.observed.startswith(stated)


@pytest.mark.parametrize(
    ("bad", "headline"),
    [
        (((0, 1),), "bad, while other pairs are not"),
        (tuple(combinations(range(3), 2)), "every tested pair is bad"),
        (((0, 1), (1, 2)), "its pairs are bad, those without it are not"),
    ],
)
def test_headline_says_whether_other_pairs_are_good(bad: tuple[tuple[int, int], ...], headline: str) -> None:
    assert [item.finding.headline for item in judge(3, dict.fromkeys(bad, HUNG)).findings] == [headline]


def test_level_of_all_pairs_of_a_gpu_is_named_with_it() -> None:
    def levels(one: int, other: int) -> dict[str, Any]:
        return {"nvlinks": 0, "level": "PIX" if (one, other) == (0, 1) else "SYS"}

    (found,) = judge(3, {(0, 2): HUNG, (1, 2): HUNG}, levels=levels).findings
    assert "All bad pairs are SYS and no other pair is, so the SYS path may be the cause" in found.finding.observed
    assert "All bad pairs" not in judge(3, {(0, 2): HUNG, (1, 2): HUNG}).findings[0].finding.observed


def test_only_faults_of_gpus_explain_a_gpu_with_bad_pairs() -> None:
    on_gpus = pairs_run(4, of_gpu(1, 4, HUNG))
    (found,) = compute_check(pairs, on_gpus, gpus(4)).findings
    assert "gpu.responding" in found.finding.explained_by
    on_cpu = smoke_run("smoke.pairs", 4, *on_gpus.cases, devices_kind="cpu")
    (found,) = compute_check(pairs, on_cpu, gpus(4)).findings
    assert found.finding.explained_by == ()


def test_two_pairs_of_a_level_are_not_compared() -> None:
    def levels(one: int, other: int) -> dict[str, Any]:
        return {"nvlinks": 0, "level": "SYS" if (one, other) == (1, 2) else "PIX"}

    result = judge(3, {(0, 1): {"bytes_per_s": 1e9}}, levels=levels)
    assert result.findings == ()
    assert [item.observed.rpartition("; ")[2] for item in result.evidence] == [
        "slowest pair GPU 0 - GPU 1", "128 MiB all-reduced exactly at 300 to 300 GB/s"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("link", "look"),
    [
        ({}, "nvidia-smi nvlink -s -i 1 "),
        ({"nvlinks": 0, "level": "PIX"}, "sudo lspci -vv -s 0000:20:00.0 "),
        (None, "sudo lspci -vv -s 0000:20:00.0 "),
    ],
    ids=["NVLink", "PCIe", "unknown"],
)
def test_link_is_inspected_with_its_tool(link: dict[str, Any] | None, look: str) -> None:
    links = () if link is None else tuple(pair(*ends, **link) for ends in combinations(range(3), 2))
    result = compute_check(pairs, pairs_run(3, {(1, 2): HUNG}), gpus(3, pairs=links))
    commands = result.findings[0].finding.remedy.look
    assert [command.startswith(look) for command in commands] == [False, True, False, False]
    assert len({command.partition(" -")[0] for command in commands[1:3]}) == 1  # both GPUs with the same tool


def test_pairs_across_sockets_are_named_by_their_level() -> None:
    def levels(one: int, other: int) -> dict[str, Any]:
        return {"nvlinks": 0, "level": "SYS" if (one < 2) != (other < 2) else "PIX"}

    across = dict.fromkeys([(0, 2), (0, 3), (1, 2), (1, 3)], HUNG)
    result = judge(4, across, levels=levels)
    assert result.findings[0].finding.subject == "pairs over SYS"
    assert "2 pairs of other levels" in result.findings[0].finding.observed


def test_no_gpu_is_named_if_all_pairs_are_bad() -> None:
    result = judge(3, dict.fromkeys(combinations(range(3), 2), HUNG))
    assert result.findings[0].finding.subject == "all 3 pairs"


def test_bad_pairs_with_nothing_in_common_are_listed() -> None:
    result = judge(4, {(0, 1): HUNG, (2, 3): HUNG})
    assert result.findings[0].finding.subject == "2 of 6 pairs"


def test_slow_pair_is_named() -> None:
    result = judge(4, {(1, 2): {"bytes_per_s": 12e9}})
    (finding,) = (item.finding for item in result.findings)
    assert finding.subject == "GPU 1 - GPU 2 (NV18)"
    assert finding.observed.startswith("12 GB/s")
    assert "300 GB/s" in finding.observed
    lenient = compute_check(pairs, pairs_run(4, {(1, 2): {"bytes_per_s": 12e9}}), gpus(4), slowest_share=0.01)
    assert lenient.status is Status.PASS


def test_gpu_whose_pairs_are_all_slow_is_named() -> None:
    assert judge(8, of_gpu(2, 8, {"bytes_per_s": 12e9})).findings[0].finding.subject == "GPU 2 (0000:30:00.0)"


def test_pairs_of_different_levels_are_not_compared() -> None:
    def levels(one: int, other: int) -> dict[str, Any]:
        return {"nvlinks": 0, "level": "SYS"} if 3 in (one, other) else {}

    result = judge(4, of_gpu(3, 4, {"bytes_per_s": 9e9}), levels=levels)
    assert result.status is Status.PASS
    assert [item.subject for item in result.evidence] == ["3 pairs (NV18)", "3 pairs (SYS)"]


def test_speed_over_cpu_devices_is_not_judged() -> None:
    run = pairs_run(3, {(0, 1): {"bytes_per_s": 1.0}}, bus_ids=())
    result = compute_check(pairs, smoke_run("smoke.pairs", 3, *run.cases, devices_kind="cpu"))
    assert result.status is Status.PASS
    assert result.evidence[0].subject == "3 pairs (cpu)"


def test_speed_is_unknown_without_the_links() -> None:
    unmapped = compute_check(pairs, pairs_run(3))
    assert unmapped.status is Status.UNKNOWN
    assert (unmapped.reason or "").startswith("speed of 3 pairs: ")
    bad = compute_check(pairs, pairs_run(3, of_gpu(1, 3, HUNG)))
    assert bad.findings[0].finding.subject == "GPU:1 (0000:20:00.0)"


def test_untested_pairs_are_unknown() -> None:
    result = judge(4, {(0, 1): NOT_TESTED, (2, 3): NOT_TESTED})
    assert result.status is Status.UNKNOWN
    assert (result.reason or "").startswith("2 of 6 pairs: not tested")
    assert judge(4, {(0, 1): NOT_TESTED, (1, 2): HUNG}).status is Status.FAIL
    assert compute_check(pairs, pairs_run(4, pairs=()), gpus(4)).status is Status.UNKNOWN


def test_fewer_devices_than_requested_are_unknown() -> None:
    run = smoke_run("smoke.pairs", 4, *pairs_run(3).cases)
    assert "3 of 4 replicas" in (compute_check(pairs, run, gpus(4)).reason or "")


def test_case_that_was_ended_reports_the_pairs_before() -> None:
    changed = {ends: NOT_TESTED for ends in combinations(range(4), 2) if ends > (1, 2)}
    result = judge(4, {**changed, (0, 1): HUNG}, outcome="timed-out", phase="pair 5 of 6 (GPU:1 - GPU:3)")
    assert [item.finding.subject for item in result.findings] == ["training alone", "GPU 0 - GPU 1 (NV18)"]


def test_is_skipped_on_two_replicas() -> None:
    case = smoke_case("alone", 2, outcome="skipped", skip_reason="here: 2 replicas")
    result = compute_check(pairs, smoke_run("smoke.pairs", 2, case))
    assert (result.status, result.reason) == (Status.SKIP, "training alone: here: 2 replicas")


def test_is_unknown_without_the_case() -> None:
    other = smoke_run("smoke.pairs", 4, smoke_case("another"), failure="the child died")
    assert compute_check(pairs, other).status is Status.UNKNOWN


def test_unread_links_are_unknown() -> None:
    unread = tuple(GpuPair(first=a, second=b, level=None, error="x") for a, b in combinations(range(3), 2))
    assert compute_check(pairs, pairs_run(3), gpus(3, pairs=unread)).status is Status.UNKNOWN


def test_level_of_few_pairs_leaves_those_of_others_compared() -> None:
    def levels(one: int, other: int) -> dict[str, Any]:
        return {"nvlinks": 0, "level": "PIX" if (one, other) == (0, 1) else "SYS"}

    (found,) = judge(4, {(2, 3): {"bytes_per_s": 1e9}}, levels=levels).findings
    assert found.finding.subject == "GPU 2 - GPU 3 (SYS)"
    assert found.finding.observed.startswith("1 GB/s, median of the other SYS pairs 300 GB/s")


@pytest.mark.parametrize(
    ("changed", "stated"),
    [
        ({}, "weights within 6e-08 of one CPU; 128 MiB all-reduced exactly at 300 to 300 GB/s"),
        ({"bytes_per_s": None}, "weights within 6e-08 of one CPU; 128 MiB all-reduced exactly"),
        ({"message_bytes": None}, "weights within 6e-08 of one CPU; 0 MiB all-reduced exactly at 300 to 300 GB/s"),
    ],
)
def test_what_was_measured_of_a_single_pair_is_stated(changed: dict[str, Any], stated: str) -> None:
    assert [item.observed for item in judge(2, {(0, 1): changed}).evidence] == [stated]


def test_largest_difference_and_slowest_pair_are_stated() -> None:
    (evidence,) = judge(3, {(0, 1): {"weight_deviation": 0.0}, (0, 2): {"bytes_per_s": 290e9}}).evidence
    assert evidence.observed.startswith("weights within 6e-08 of one CPU")
    assert evidence.observed.endswith("at 290 to 300 GB/s; slowest pair GPU 0 - GPU 2")


def test_number_of_requested_devices_may_be_unknown() -> None:
    run = smoke_run("smoke.pairs", 3, *pairs_run(3).cases, replicas_requested=None, gpus_seen=None)
    assert "TensorFlow made 3 of an unknown number of replicas" in (compute_check(pairs, run, gpus(3)).reason or "")
    complete = smoke_run("smoke.pairs", 3, *pairs_run(3).cases, replicas_requested=None, gpus_seen=3)
    assert compute_check(pairs, complete, gpus(3)).status is Status.PASS


def test_case_that_ended_before_its_first_pair_is_one_finding() -> None:
    untested = dict.fromkeys(combinations(range(3), 2), NOT_TESTED)
    result = judge(3, untested, outcome="died", signal="SIGSEGV")
    assert [item.finding.subject for item in result.findings] == ["training alone"]
    assert result.unjudged == ()
    assert [item.subject for item in judge(3, untested).unjudged] == ["3 of 3 pairs"]
