from dataclasses import replace

import pytest

from helpers.reports import failure, finding, result
from kdoctor.engine.categories import categories
from kdoctor.engine.causes import find_causes
from kdoctor.engine.report import Category, Mark, Result
from kdoctor.model import Evidence, Remedy, Severity, Status


def summed_up(*results: Result) -> dict[str, Category]:
    return {item.family: item for item in categories(results, find_causes(results))}


def passed(check_id: str, *briefs: str) -> Result:
    evidence = tuple(Evidence(subject=f"s{n}", observed="fine", brief=brief) for n, brief in enumerate(briefs))
    return result(check_id, evidence=evidence)


def test_passed_family_shows_its_values_once() -> None:
    line = summed_up(
        passed("gpu.count-expected", "8 x NVIDIA H100"), passed("gpu.free", "free", "free"), passed("gpu.fan", "")
    )["gpu"]
    assert (line.mark, line.text) == (Mark.PASS, "8 x NVIDIA H100, free")


@pytest.mark.parametrize(("severity", "mark"), [(Severity.ERROR, Mark.ERROR), (Severity.WARNING, Mark.WARNING)])
def test_failed_family_shows_its_problem(severity: Severity, mark: Mark) -> None:
    line = summed_up(failure("gpu.free", finding("A", observed="busy"), severity=severity), passed("gpu.fan", "x"))
    assert line["gpu"] == Category(family="gpu", mark=mark, text="A: busy")


def test_failure_for_information_keeps_the_family_well() -> None:
    line = summed_up(failure("gpu.power-limit", severity=Severity.INFO), passed("gpu.fan", "8 GPUs"))["gpu"]
    assert (line.mark, line.text) == (Mark.PASS, "8 GPUs")


@pytest.mark.parametrize(
    ("reason", "mark", "alone"),
    [
        ("no facts about pci were collected", Mark.PASS, Mark.SKIP),
        ("processes not read (not in nvidia-smi)", Mark.PASS, Mark.SKIP),
        ("the driver did not answer", Mark.UNKNOWN, Mark.UNKNOWN),
    ],
)
def test_what_a_recording_lacks_is_no_doubt_about_what_it_has(reason: str, mark: Mark, alone: Mark) -> None:
    missing = result("gpu.free", Status.UNKNOWN, reason=reason)
    assert summed_up(passed("gpu.fan", "8 GPUs"), missing)["gpu"].mark is mark
    assert summed_up(missing)["gpu"].mark is alone


def test_event_leaves_a_family_its_values() -> None:
    noted = failure("gpu.xids", finding("GPU 1", observed="a program failed", noted=True), severity=Severity.INFO)
    line = summed_up(noted, passed("gpu.fan", "8 GPUs"))["gpu"]
    assert (line.mark, line.text) == (Mark.PASS, "8 GPUs")
    assert summed_up(noted)["gpu"].mark is Mark.INFO  # nothing passed
    driver = failure("driver.loaded", finding("driver", remedy=Remedy.configure("Load it.")))
    blocked = result("gpu.free", Status.SKIP, blocked_by="driver.loaded")
    assert summed_up(driver, noted, blocked)["gpu"].mark is Mark.SKIP  # nothing of the GPUs was well
    hidden = replace(noted, findings=tuple(replace(item, hidden=True) for item in noted.findings))
    assert summed_up(hidden, passed("gpu.fan", "8 GPUs"))["gpu"].text == "8 GPUs"


@pytest.mark.parametrize(("brief", "said"), [("8 GPUs", "8 GPUs"), ("", "no problem found")])
def test_unknown_outranks_pass(brief: str, said: str) -> None:
    line = summed_up(passed("gpu.fan", brief), result("gpu.clocks", Status.UNKNOWN, reason="not read"))["gpu"]
    assert (line.mark, line.text) == (Mark.UNKNOWN, f"{said}; not known: not read")


@pytest.mark.parametrize(("count", "more"), [(1, ""), (2, "(and 1 more)"), (3, "(and 2 more)")])
def test_first_unknown_is_named_and_the_others_are_counted(count: int, more: str) -> None:
    names = ("gpu.clocks", "gpu.free", "gpu.fan")[:count]
    gaps = [result(name, Status.UNKNOWN, reason=f"{name} was not read") for name in names]
    assert summed_up(*gaps)["gpu"].text.endswith(f"gpu.clocks was not read {more}".rstrip())


def test_accepted_unknown_does_not_hide_a_pass() -> None:
    accepted = result("gpu.clocks", Status.UNKNOWN, reason="not read", accepted="known")
    assert summed_up(accepted, passed("gpu.fan", "8 GPUs"))["gpu"].mark is Mark.PASS
    assert summed_up(accepted)["gpu"].mark is Mark.UNKNOWN
    known = result("gpu.clocks", Status.UNKNOWN, reason="not read", severity=Severity.INFO)
    assert summed_up(known, passed("gpu.fan", "8 GPUs"))["gpu"].mark is Mark.PASS


def test_failure_for_information_is_shown_if_it_fails_the_run() -> None:
    results = (failure("gpu.power-limit", finding("GPU 1", observed="low"), severity=Severity.INFO),)
    (line,) = categories(results, find_causes(results), Severity.INFO)
    assert (line.mark, line.text) == (Mark.INFO, "GPU 1: low")


def test_family_that_was_not_asked_for_is_left_out() -> None:
    line = summed_up(result("gpu.free", Status.SKIP, reason="no GPUs expected"))["gpu"]
    assert line == Category(family="gpu", mark=Mark.SKIP, text="no GPUs expected", left_out=True)


def test_problem_that_matters_later_is_a_warning() -> None:
    lines = summed_up(
        failure("driver.loaded"),
        failure("versions.cuda-libraries", finding("CUDA", after=("driver.loaded",))),
        failure("versions.xla-files", finding("XLA", explained_by=("versions.cuda-libraries",))),
        passed("versions.python-supported", "Python 3.11.7"),
    )
    assert (lines["versions"].mark, lines["versions"].text) == (Mark.WARNING, "Python 3.11.7")


def test_network_is_shown_only_if_it_was_judged() -> None:
    assert summed_up(result("network.rdma", Status.SKIP, reason="no RDMA device")) == {}
    assert list(summed_up(passed("network.rdma", "8 ports"), passed("gpu.fan", "8 GPUs"))) == ["gpu", "network"]


def test_skipped_family_names_its_most_frequent_reason() -> None:
    reasons = ("a desktop", "no GPUs expected", "no GPUs expected")
    skipped = [result(f"gpu.x{n}", Status.SKIP, reason=reason) for n, reason in enumerate(reasons)]
    assert summed_up(*skipped)["gpu"].text == "no GPUs expected"
