import pytest

from helpers.cases import cases
from helpers.reports import failure, finding, result
from kdoctor.engine.causes import about_one_gpu, describe_problem, find_causes
from kdoctor.engine.report import Cause, JudgedFinding, Result
from kdoctor.model import Finding, Remedy, Severity, Status, Unjudged

GPU_2, GPU_5 = "GPU 2 (0000:4c:00.0)", "GPU 5 (0000:9b:00.0)"


def remedy(*commands: str, summary: str = "Fix it.") -> Remedy:
    return Remedy.configure(summary, *commands)


def about(subject: str, command: str = "fix it", **changes: object) -> Finding:
    return finding(subject, remedy=remedy(command, summary=f"Run {command}."), **changes)


def ids(causes: tuple[Cause, ...]) -> list[tuple[str, ...]]:
    return [cause.checks for cause in causes]


def test_explained_failure_is_part_of_its_cause() -> None:
    keras = failure("versions.keras-compatible", about("keras", "pip install keras"))
    baseline = failure("smoke.baseline", about("mirrored", "x", explained_by=("versions.keras-compatible",)))
    (cause,) = find_causes([baseline, keras])
    assert cause.checks == ("versions.keras-compatible",)
    assert cause.explains == ("smoke.baseline",)
    assert cause.commands == ("pip install keras",)


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


def test_lost_gpu_explains_only_findings_about_itself() -> None:
    lost = failure("gpu.responding", about(GPU_2, "sudo reboot"))
    logged = failure(
        "gpu.kernel-log",
        about(GPU_2, "a", explained_by=("gpu.responding",)),
        about(GPU_5, "b", observed="Xid 119", explained_by=("gpu.responding",)),
    )
    first, second = find_causes([logged, lost])
    assert (first.checks, first.explains) == (("gpu.responding",), ("gpu.kernel-log",))
    assert [problem.subjects for problem in second.problems] == [(GPU_5,)]


def test_explanations_form_chains() -> None:
    first = failure("driver.loaded", about("driver", "a"))
    second = failure("gpu.count-expected", about("GPUs", "b", explained_by=("driver.loaded",)))
    third = failure("smoke.baseline", about("mirrored", "c", explained_by=("gpu.count-expected",)))
    (cause,) = find_causes([third, second, first], lambda cause, effect: (cause, effect) != ("mirrored", "GPUs"))
    assert cause.checks == ("driver.loaded",)
    assert set(cause.explains) == {"gpu.count-expected", "smoke.baseline"}


def test_findings_that_explain_each_other_are_not_lost() -> None:
    one = failure("gpu.free", about("A", "a", explained_by=("gpu.clocks",)))
    two = failure("gpu.clocks", about("B", "b", explained_by=("gpu.free",)))
    (cause,) = find_causes([one, two])
    assert {*cause.checks, *cause.explains} == {"gpu.free", "gpu.clocks"}


def test_cause_is_as_severe_as_what_it_explains() -> None:
    mild = failure("gpu.fan", about(GPU_2, "a"), severity=Severity.WARNING)
    hot = failure("gpu.clocks", about(GPU_2, "b", explained_by=("gpu.fan",)))
    assert find_causes([mild, hot])[0].severity is Severity.ERROR


def test_subjects_with_one_headline_are_one_problem() -> None:
    held = [
        finding(f"GPU {index} (0000:{index}0:00.0)", observed=f"{80 + index} MHz", brief="held at 80 to 87 of 1980 MHz")
        for index in range(8)
    ]
    (cause,) = find_causes([failure("gpu.clocks", *held)])
    (problem,) = cause.problems
    assert describe_problem(problem) == "GPU 0-7: held at 80 to 87 of 1980 MHz"
    assert [item.observed for item in problem.findings][::7] == ["80 MHz", "87 MHz"]


def test_commands_of_several_subjects_are_listed_once() -> None:
    resets = [
        finding(gpu, remedy=remedy("nvidia-smi -q", f"reset {gpu}", summary="Reset it.")) for gpu in (GPU_2, GPU_5)
    ]
    (cause,) = find_causes([failure("gpu.responding", *resets)])
    assert cause.commands == ("nvidia-smi -q", f"reset {GPU_2}", f"reset {GPU_5}")


def test_findings_of_several_checks_with_the_same_commands_are_one_cause() -> None:
    one = failure("versions.keras-compatible", about("keras", observed="averages nothing"))
    two = failure("versions.known-bad", about("keras 3.6", observed="known bad"))
    (cause,) = find_causes([one, two])
    assert cause.checks == ("versions.keras-compatible", "versions.known-bad")
    assert [problem.headline for problem in cause.problems] == ["averages nothing", "known bad"]


def test_findings_without_commands_are_separate_causes() -> None:
    one = failure("gpu.free", finding("A", observed="a", remedy=remedy(summary="one")))
    two = failure("gpu.clocks", finding("B", observed="b", remedy=remedy(summary="one")))
    assert len(find_causes([one, two])) == 2


def test_waived_finding_is_no_cause() -> None:
    waived = JudgedFinding(finding=about("A"), hidden=True)
    assert find_causes([result("gpu.free", Status.SKIP, findings=(waived,))]) == ()


def test_skipped_checks_are_counted_with_the_cause_that_blocks_them() -> None:
    driver = failure("driver.loaded", about("driver"))
    blocked = result("gpu.free", Status.SKIP, blocked_by="driver.loaded")
    assert find_causes([driver, blocked])[0].blocked == ("gpu.free",)


@pytest.mark.parametrize(("explained_by", "unjudged"), [(("gpu.responding",), ("gpu.free",)), ((), ())])
def test_unknown_check_belongs_to_the_cause_that_explains_it(
    explained_by: tuple[str, ...], unjudged: tuple[str, ...]
) -> None:
    missing = Unjudged(subject=GPU_2, reason="not read", explained_by=explained_by)
    unknown = result("gpu.free", Status.UNKNOWN, reason="not read", unjudged=(missing,))
    (cause,) = find_causes([failure("gpu.responding", about(GPU_2)), unknown])
    assert cause.unjudged == unjudged


def test_check_with_one_unexplained_gap_is_not_folded() -> None:
    gaps = (
        Unjudged(subject=GPU_2, reason="lost", explained_by=("gpu.responding",)),
        Unjudged(subject=GPU_5, reason="not read", explained_by=("gpu.responding",)),
    )
    unknown = result("gpu.free", Status.UNKNOWN, reason="not read", unjudged=gaps)
    assert find_causes([failure("gpu.responding", about(GPU_2)), unknown])[0].unjudged == ()


def test_errors_come_first_then_what_explains_most_and_later_causes_last() -> None:
    causes = find_causes(
        [
            failure("host.swap", about("swap", "a"), severity=Severity.WARNING),
            failure("versions.cuda-libraries", about("CUDA", "b", after=("driver.loaded",))),
            failure("versions.keras-compatible", about("keras", "c")),
            failure("driver.loaded", about("driver", "d")),
            result("gpu.free", Status.SKIP, blocked_by="driver.loaded"),
        ]
    )
    assert ids(causes) == [
        ("driver.loaded",),
        ("versions.keras-compatible",),
        ("versions.cuda-libraries",),
        ("host.swap",),
    ]
    assert causes[2].after == ("driver.loaded",)


def test_cause_is_not_later_if_what_it_waits_for_passed() -> None:
    libraries = failure("versions.cuda-libraries", about("CUDA", after=("driver.loaded",)))
    assert find_causes([result("driver.loaded"), libraries])[0].after == ()


@cases(("aa", "xx", "12", 1), ("ab", "xx", "11", 1), ("ab", "xx", "12", 2), ("aa", "xy", "12", 2))
def test_findings_of_a_check_with_one_fix_are_one_cause(headlines: str, fixes: str, commands: str, count: int) -> None:
    found = [
        finding(subject, observed=headline, remedy=remedy(command, summary=fix))
        for subject, headline, fix, command in zip((GPU_2, GPU_5), headlines, fixes, commands, strict=True)
    ]
    causes = find_causes([failure("gpu.free", *found)])
    assert (len(causes), {cause.fix for cause in causes}) == (count, set(fixes))  # no fix is hidden


def test_check_blocked_by_one_that_did_not_fail_belongs_to_no_cause() -> None:
    blocked = result("gpu.free", Status.SKIP, blocked_by="driver.loaded")
    (cause,) = find_causes([failure("host.swap", about("swap")), blocked])
    assert cause.blocked == ()


def test_one_of_several_patterns_is_enough_to_explain() -> None:
    keras = failure("versions.keras-compatible", about("keras", explains=("job.*", "smoke.*")))
    baseline = failure("smoke.baseline", about("mirrored", explained_by=("versions.keras-compatible",)))
    assert find_causes([keras, baseline])[0].explains == ("smoke.baseline",)


def test_all_consequences_count() -> None:
    """One explained failure, one gap and one blocked check are more than two explained failures."""

    def explained(check: str, by: str) -> Result:
        return failure(check, about(check, f"fix {check}", explained_by=(by,)))

    gap = Unjudged(subject="x", reason="not read", explained_by=("driver.loaded",))
    first, second = find_causes(
        [
            failure("host.swap", about("swap", "a")),
            explained("host.a", "host.swap"), explained("host.b", "host.swap"),
            failure("driver.loaded", about("driver", "b")), explained("host.c", "driver.loaded"),
            result("gpu.fan", Status.UNKNOWN, reason="not read", unjudged=(gap,)),
            result("gpu.free", Status.SKIP, blocked_by="driver.loaded"),
        ]
    )  # fmt: skip
    assert (first.checks, second.checks) == (("driver.loaded",), ("host.swap",))


@cases(
    ("driver", "GPUs", True),
    ("driver", GPU_2, True),
    (GPU_2, "GPUs", True),
    (GPU_2, GPU_2, True),
    (GPU_2, GPU_5, False),
)
def test_problems_of_two_gpus_do_not_explain_each_other(cause: str, effect: str, *, expected: bool) -> None:
    assert about_one_gpu(cause, effect) is expected


def test_finding_that_fits_two_causes_belongs_to_the_first() -> None:
    first = about(GPU_2, "a", observed="is lost")
    second = about(GPU_5, "b", observed="is hot")
    both = about("GPUs", "a", observed="is hot")
    causes = find_causes([failure("gpu.responding", first, second, both)])
    assert [[problem.subjects for problem in cause.problems] for cause in causes] == [[(GPU_2,), ("GPUs",)], [(GPU_5,)]]


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
