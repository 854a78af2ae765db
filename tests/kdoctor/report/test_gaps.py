from dataclasses import replace

from helpers.reports import complete, cpu_report, failure, finding, result, unknown_report
from kdoctor.engine.report import Result
from kdoctor.facts import FactGroup, Host, KernelLog, NotCollected, Packages, TensorFlowBuild
from kdoctor.model import Severity, Status, Unjudged
from kdoctor.report.causes import gap_blocks, problem_blocks
from kdoctor.report.gaps import find_gaps


def unknown(check_id: str, reason: str, *subjects: str) -> Result:
    items = tuple(Unjudged(subject=subject, reason=reason) for subject in subjects)
    text = "; ".join(f"{item.subject}: {item.reason}" for item in items) or reason
    return result(check_id, Status.UNKNOWN, reason=text, unjudged=items)


def without(check_id: str, group: type[FactGroup], *subjects: str) -> Result:
    return unknown(check_id, NotCollected(group).unavailable, *subjects)


RECORDING = (
    without("versions.known-bad", TensorFlowBuild),
    without("versions.package-conflicts", Packages),
    without("host.memory", Host),
    without("gpu.kernel-log", KernelLog, "kernel log"),
)


def test_groups_that_were_not_recorded_are_named_once() -> None:
    assert find_gaps(RECORDING).not_recorded == ("Python environment", "host", "kernel log")


def test_values_that_output_does_not_contain_are_counted() -> None:
    lacking = [unknown(f"gpu.{n}", "fan not read (not in nvidia-smi -q)", "GPU 0", "GPU 1") for n in range(3)]
    gaps = find_gaps([*lacking, unknown("topology.p2p", "not read (not in nvidia-smi)", "GPU 0 - GPU 1")])
    assert gaps.not_printed == {"nvidia-smi -q": 3, "nvidia-smi": 1}
    assert not gaps.others


def test_subjects_of_one_reason_are_together() -> None:
    gaps = find_gaps([unknown("gpu.fan", "ERR!", "GPU 0", "GPU 1", "GPU 2")])
    assert gaps.others == {"GPU 0-2: ERR!": ("gpu.fan",)}


def test_checks_of_one_reason_are_together() -> None:
    gaps = find_gaps([unknown("job.trains", "no fit", "model"), unknown("job.options", "no fit", "data", "model")])
    assert gaps.others == {"model, data: no fit": ("job.trains", "job.options")}
    apart = find_gaps([unknown("job.trains", "no fit"), unknown("job.options", "no time")])
    assert apart.others == {"no fit": ("job.trains",), "no time": ("job.options",)}


def test_block_counts_what_it_names() -> None:
    hints = [replace(unknown("gpu.fan", "no fit"), severity=Severity.INFO) for _ in range(3)]
    (block,) = gap_blocks(cpu_report(results=(unknown("gpu.free", "no fit"), *hints)))
    assert (block.findings[0].split()[0], block.fields[0].label) == ("4", "4 checks")


def test_what_makes_a_run_inconclusive_precedes_warnings() -> None:
    gap, warned = unknown("gpu.free", "not read", "GPU 0"), failure("host.memory", finding(), severity=Severity.WARNING)
    report = complete(unknown_report(results=(gap, warned)))
    assert [block.id for block in problem_blocks(report)] == ["", "host.memory"]
    failed = complete(cpu_report(results=(gap, failure("host.memory", finding()))))
    assert [block.id for block in problem_blocks(failed)] == ["host.memory", ""]


def test_recording_shows_how_to_add_what_it_lacks() -> None:
    (block,) = gap_blocks(cpu_report(results=RECORDING))
    assert [command for field in block.fields for command in field.commands] == ["kdoctor snapshot -o machine.json"]


def test_interrupted_run_is_no_recording() -> None:
    (block,) = gap_blocks(cpu_report(results=RECORDING, interrupted=True))
    assert not [command for field in block.fields for command in field.commands]
