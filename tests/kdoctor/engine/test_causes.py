import pytest

from helpers.cases import cases
from helpers.reports import failure, finding, result
from kdoctor.engine.causes import about_one_gpu, find_causes
from kdoctor.engine.report import Cause, JudgedFinding
from kdoctor.model import Finding, Remedy, Severity, Status, Unjudged

GPU_2, GPU_5 = "GPU 2 (0000:4c:00.0)", "GPU 5 (0000:9b:00.0)"


def remedy(*commands: str, summary: str = "Fix it.") -> Remedy:
    return Remedy.configure(summary, *commands)


def about(subject: str, command: str = "fix it", **changes: object) -> Finding:
    return finding(subject, remedy=remedy(command, summary=f"Run {command}."), **changes)


def ids(causes: tuple[Cause, ...]) -> list[tuple[str, ...]]:
    return [cause.checks for cause in causes]


def test_failure_is_its_own_cause_if_what_may_explain_it_passed() -> None:
    baseline = failure("smoke.baseline", about("mirrored", explained_by=("versions.keras-compatible",)))
    assert ids(find_causes([result("versions.keras-compatible"), baseline])) == [("smoke.baseline",)]


def test_cause_explains_only_what_it_says() -> None:
    keras = failure("versions.keras-compatible", about("keras", "a", explains=("job.reported-loss",)))
    weights = failure("smoke.baseline", about("mirrored", "b", explained_by=("versions.keras-compatible",)))
    loss = failure("job.reported-loss", about("loss", "c", explained_by=("versions.keras-compatible",)))
    causes = find_causes([keras, weights, loss])
    assert ids(causes) == [("versions.keras-compatible",), ("smoke.baseline",)]
    assert causes[0].explains == ("job.reported-loss",)


def test_explanations_form_chains() -> None:
    first = failure("driver.loaded", about("driver", "a"), severity=Severity.INFO)
    second = failure("gpu.count-expected", about("GPUs", "b", explained_by=("driver.loaded",)))
    third = failure("smoke.baseline", about("mirrored", "c", explained_by=("gpu.count-expected",)))
    (cause,) = find_causes([third, second, first], lambda cause, effect: (cause, effect) != ("mirrored", "GPUs"))
    assert (cause.checks, cause.severity) == (("driver.loaded",), Severity.ERROR)
    assert set(cause.explains) == {"gpu.count-expected", "smoke.baseline"}


def test_commands_of_several_subjects_are_listed_once() -> None:
    resets = [
        finding(gpu, remedy=remedy("nvidia-smi -q", f"reset {gpu}", summary="Reset it.")) for gpu in (GPU_2, GPU_5)
    ]
    (cause,) = find_causes([failure("gpu.responding", *resets)])
    assert cause.commands == ("nvidia-smi -q", f"reset {GPU_2}", f"reset {GPU_5}")


def test_findings_without_commands_are_separate_causes() -> None:
    one = failure("gpu.free", finding("A", observed="a", remedy=remedy(summary="one")))
    two = failure("gpu.clocks", finding("B", observed="b", remedy=remedy(summary="one")))
    assert len(find_causes([one, two])) == 2


def test_finding_with_what_two_causes_have_belongs_to_the_first() -> None:
    one = failure("gpu.free", finding("A", observed="a", remedy=remedy("fix a")))
    both = (finding("B", observed="b", remedy=remedy("fix b")), finding("C", observed="b", remedy=remedy("fix a")))
    causes = find_causes([one, failure("gpu.fan", *both)])
    assert [[problem.subjects for problem in cause.problems] for cause in causes] == [[("A",), ("C",)], [("B",)]]


def test_waived_finding_is_no_cause() -> None:
    waived = JudgedFinding(finding=about("A"), hidden=True)
    assert find_causes([result("gpu.free", Status.SKIP, findings=(waived,))]) == ()


def test_skipped_checks_are_counted_with_the_cause_that_blocks_them() -> None:
    driver = failure("driver.loaded", about("driver"))
    blocked = result("gpu.free", Status.SKIP, blocked_by="driver.loaded")
    assert find_causes([driver, blocked])[0].blocked == ("gpu.free",)


def test_check_with_one_unexplained_gap_is_not_folded() -> None:
    gaps = (
        Unjudged(subject=GPU_2, reason="lost", explained_by=("gpu.responding",)),
        Unjudged(subject=GPU_5, reason="not read", explained_by=("gpu.responding",)),
    )
    unknown = result("gpu.free", Status.UNKNOWN, reason="not read", unjudged=gaps)
    assert find_causes([failure("gpu.responding", about(GPU_2)), unknown])[0].unjudged == ()


def test_cause_is_not_later_if_what_it_waits_for_passed() -> None:
    libraries = failure("versions.cuda-libraries", about("CUDA", after=("driver.loaded",)))
    assert find_causes([result("driver.loaded"), libraries])[0].after == ()


def test_check_blocked_by_one_that_did_not_fail_belongs_to_no_cause() -> None:
    blocked = result("gpu.free", Status.SKIP, blocked_by="driver.loaded")
    (cause,) = find_causes([failure("host.swap", about("swap")), blocked])
    assert cause.blocked == ()


@cases(
    ("driver", "GPUs", True),
    ("driver", GPU_2, True),
    (GPU_2, "GPUs", True),
    (GPU_2, GPU_2, True),
    (GPU_2, GPU_5, False),
)
def test_problems_of_two_gpus_do_not_explain_each_other(cause: str, effect: str, *, expected: bool) -> None:
    assert about_one_gpu(cause, effect) is expected


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_first_finding_of_a_check_explains(order: tuple[int, int]) -> None:
    """One is about the machine and one about the same GPU: both may explain, and the report names the first."""
    found = [about("driver", "a", observed="is old"), about(GPU_2, "b", observed="is lost")]
    lost = failure("gpu.responding", *(found[place] for place in order))
    logged = failure("gpu.kernel-log", about(GPU_2, "c", explained_by=("gpu.responding",)))
    causes = find_causes([lost, logged])
    assert {cause.commands: cause.explains for cause in causes} == {
        found[order[0]].remedy.commands: ("gpu.kernel-log",),
        found[order[1]].remedy.commands: (),
    }
