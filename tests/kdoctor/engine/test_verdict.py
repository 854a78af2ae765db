from dataclasses import replace
from itertools import product

from helpers.cases import cases
from helpers.reports import failure, finding
from kdoctor.engine.causes import find_causes
from kdoctor.engine.report import Conclusion, Result
from kdoctor.engine.verdict import ALL_PASSED, conclude
from kdoctor.model import Remedy, Severity, Status, Unjudged

OTHER = Remedy.configure("Free some memory.")


def result(status: Status, severity: Severity = Severity.ERROR, **changes: object) -> Result:
    return Result(id="host.it", family="host", title="t", status=status, severity=severity, **changes)  # type: ignore[arg-type]


PASS, FAIL, SKIP, UNKNOWN = (Status.PASS, Status.FAIL, Status.SKIP, Status.UNKNOWN)
ERROR, WARNING, INFO = (Severity.ERROR, Severity.WARNING, Severity.INFO)


@cases(
    ([], ERROR, 3),
    ([result(PASS)], ERROR, 0),
    ([result(SKIP)], ERROR, 3),
    ([result(PASS), result(SKIP)], ERROR, 0),
    ([result(PASS), result(FAIL)], ERROR, 1),
    ([result(FAIL), result(UNKNOWN)], ERROR, 1),
    ([result(PASS), result(UNKNOWN)], ERROR, 3),
    ([result(PASS), result(UNKNOWN, accepted="known")], ERROR, 0),
    ([result(UNKNOWN, accepted="known")], ERROR, 3),
    ([result(PASS), result(FAIL, WARNING)], ERROR, 0),
    ([result(PASS), result(UNKNOWN, WARNING)], ERROR, 0),
    ([result(PASS), result(FAIL, WARNING)], WARNING, 1),
    ([result(PASS), result(UNKNOWN, WARNING)], WARNING, 3),
    ([result(PASS), result(FAIL, INFO)], WARNING, 0),
    ([result(PASS), result(FAIL, INFO)], INFO, 1),
    ([result(PASS), result(SKIP, blocked_by="host.first")], ERROR, 3),
    ([result(PASS), result(SKIP, WARNING, blocked_by="host.first")], ERROR, 0),
    ([result(FAIL, WARNING)], ERROR, 0),
    ([result(UNKNOWN, WARNING)], ERROR, 3),
)
def test_exit_codes(results: list[Result], fail_on: Severity, code: int) -> None:
    verdict = conclude(results, fail_on)
    assert verdict.exit_code == code
    assert verdict.conclusion is {0: Conclusion.PASS, 1: Conclusion.FAIL, 3: Conclusion.UNKNOWN}[code]
    assert verdict.reason


@cases(([], Conclusion.UNKNOWN), ([PASS], Conclusion.UNKNOWN), ([FAIL], Conclusion.FAIL))
def test_interrupted_run_never_passes(statuses: list[Status], conclusion: Conclusion) -> None:
    verdict = conclude([result(status) for status in statuses], interrupted=True)
    assert (verdict.conclusion, verdict.exit_code) == (conclusion, 130)


def test_exit_code_zero_requires_pass_without_failures_or_unknowns() -> None:
    for statuses in product(Status, repeat=3):
        code = conclude([result(status) for status in statuses]).exit_code
        assert (code == 0) == (PASS in statuses and FAIL not in statuses and UNKNOWN not in statuses)
        assert (code == 1) == (FAIL in statuses)


@cases(((SKIP, SKIP), 3), ((SKIP, PASS), 0), ((SKIP, UNKNOWN), 3), ((SKIP, FAIL), 1))
def test_run_with_all_trainings_skipped_is_inconclusive(statuses: tuple[Status, Status], code: int) -> None:
    trainings = [replace(result(status), id=f"smoke.{n}") for n, status in enumerate(statuses)]
    verdict = conclude([result(PASS), result(SKIP), *trainings], trainings={item.id for item in trainings})
    assert verdict.exit_code == code
    assert ("smoke.0, smoke.1 skipped" in verdict.reason) == (statuses == (SKIP, SKIP))
    assert conclude([result(PASS), *trainings[:1]]).exit_code == 0  # no training was requested
    mild = replace(result(PASS, WARNING), id="smoke.mild")  # does not show that a job trains
    assert conclude([*trainings, mild], trainings={*(item.id for item in trainings), mild.id}).exit_code == code


@cases(
    ("no facts about host were collected", Status.PASS, "nothing wrong in what was recorded"),
    ("no facts about host were collected", Status.FAIL, "no error in what was recorded"),
    ("not in nvidia-smi -q", Status.PASS, "nothing wrong in what was recorded"),
    ("not in nvidia-smi -q", Status.SKIP, "nothing judged in what was recorded"),
    ("the driver did not answer", Status.PASS, "could not be evaluated"),
)
def test_recording_is_inconclusive_because_of_what_it_lacks(reason: str, read: Status, words: str) -> None:
    verdict = conclude([result(Status.UNKNOWN, reason=reason), result(read, Severity.WARNING)])
    assert (verdict.conclusion, words in verdict.reason) == (Conclusion.UNKNOWN, True)


def test_reason_that_most_of_many_checks_share_is_that_of_the_run() -> None:
    reasons = ("it was not examined", "no fit", "no fit", "no fit", "no fit")
    unknown = [result(UNKNOWN, unjudged=(Unjudged(subject="job", reason=text),)) for text in reasons]
    assert conclude(unknown).reason == "no fit"
    assert "could not be evaluated" in conclude(unknown[:4]).reason


def test_pass_reason_names_warnings() -> None:
    assert conclude([result(PASS), result(FAIL, WARNING)]).reason == "host.it"
    assert conclude([result(PASS), result(FAIL, INFO)]).reason == ALL_PASSED


@cases(
    ([result(PASS)], False),
    ([result(PASS), result(FAIL, WARNING)], True),
    ([result(PASS), result(FAIL, INFO)], False),
    ([result(PASS), result(UNKNOWN, WARNING)], False),
)
def test_pass_with_a_failed_warning_is_marked(results: list[Result], *, warned: bool) -> None:
    assert conclude(results).warned is warned


def test_cause_of_a_warning_is_not_the_reason_of_a_failure() -> None:
    warning = failure("host.swap", finding("swap", observed="in use"), severity=WARNING)
    failed = failure("host.disk", finding("disk", observed="full"))
    causes = [*find_causes([warning]), *find_causes([failed])]
    assert conclude([warning, failed], causes=causes).reason == "disk: full (host.disk)"


def test_failure_reason_is_the_worst_cause_and_counts_the_others() -> None:
    failed = [failure("host.swap", severity=WARNING), failure("host.disk", finding("disk", observed="full"))]
    reason = conclude(failed, causes=find_causes(failed)).reason
    assert reason == "disk: full (host.disk)"
    later = finding("CUDA", observed="absent", after=("host.disk",))  # is not counted
    more = [*failed, failure("host.memory", finding("memory", remedy=OTHER)), failure("versions.cuda-libraries", later)]
    assert conclude(more, causes=find_causes(more)).reason == "disk: full (host.disk), and 1 more problem"


def test_long_problem_is_cut_in_the_reason() -> None:
    failed = [failure("host.disk", finding("disk", observed="very " * 100))]
    assert 110 < len(conclude(failed, causes=find_causes(failed)).reason) <= 120 + len(" (host.disk)")


def test_pass_reason_names_findings_about_hidden_gpus() -> None:
    finding = replace(failure("host.it").findings[0], hidden=True)
    reason = conclude([result(PASS, findings=(finding,))]).reason
    assert "on hidden GPUs: host.it" in reason
    assert "waived" not in reason
    assert "waived" not in conclude([result(PASS), result(FAIL, WARNING, findings=failure("host.it").findings)]).reason
