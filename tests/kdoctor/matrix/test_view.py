"""What the answer shows in any format, from a matrix that can be worked out by hand."""

from dataclasses import replace
from typing import Any

from helpers.cases import cases
from helpers.matrices import A100, H100, release, small_matrix
from kdoctor.matrix.compatibility import compatible
from kdoctor.matrix.cuda import Earlier
from kdoctor.matrix.load import shipped_matrix
from kdoctor.matrix.model import Release, VersionMatrix
from kdoctor.matrix.requirements import requirements
from kdoctor.matrix.verdict import Machine, Reason, Verdict
from kdoctor.matrix.view import View, shown_driver, span

OLD, PATCH, NEW = release("2.18.0"), release("2.18.1"), release("2.19.0")
MATRIX = small_matrix(OLD, PATCH, NEW)
MACHINE = Machine(driver="560.28", gpus=(A100,), python="3.11")


def view(matrix: VersionMatrix = MATRIX, machine: Machine | None = MACHINE, **changes: Any) -> View:
    verdicts = compatible(matrix, machine) if machine else ()
    return View(matrix=matrix, machine=machine, verdicts=verdicts, **changes)


def verdict(item: Release, *kinds: tuple[str, str]) -> Verdict:
    """A verdict with a reason of each of these kinds and rules."""
    given = tuple(Reason(kind, rule, f"the {rule}") for kind, rule in kinds)  # type: ignore[arg-type]
    return Verdict(release=item, reasons=given)


def test_platform_without_gpus_has_the_command_for_the_cpu() -> None:
    on_mac = Machine(driver="560.28", gpus=(A100,), python="3.11", platform="macos")
    assert view(machine=on_mac).on_cpu == ("python -m pip install tensorflow==2.19.0",)
    assert view().on_cpu == ()
    assert view(machine=None).on_cpu == ()
    unknown_python = Machine(driver="560.28", gpus=(A100,), platform="macos")
    assert view(machine=unknown_python).on_cpu == ()  # a release that only lacks facts cannot be promised either
    mixed = small_matrix(release("2.12.0"), NEW)  # 2.12 has no wheel for it at all
    assert view(mixed, machine=on_mac).on_cpu == ("python -m pip install tensorflow==2.19.0",)
    old_driver = Machine(driver="470.1", gpus=(A100,), python="3.9", platform="macos")
    assert view(machine=old_driver).on_cpu == ()  # there is no wheel for that Python


EARLIER = small_matrix(
    NEW,
    earlier=tuple(
        Earlier(tensorflow=name, cuda="9.0", cudnn="7", python="3.6", driver=driver, source=("a test",))
        for name, driver in (("1.4", "367.48"), ("2.3", "418.39"))
    ),
)


@cases(
    ("418.39", "8.0", "2.3"),
    ("418.38", "8.0", "1.4"),
    ("367.47", "8.0", None),
    ("525.60.13", "8.0", None),  # the matrix has releases for it
    ("418.39", "9.0", None),  # the GPU needs a newer driver than that
)
def test_driver_older_than_the_matrix_has_the_last_release_that_ran(
    driver: str, capability: str, last: str | None
) -> None:
    machine = Machine(driver=driver, gpus=(A100 if capability == "8.0" else H100,), python="3.11")
    found = view(EARLIER, machine=machine).earlier
    assert (found and found.tensorflow) == last
    assert view(EARLIER, machine=None).earlier is None


def test_jax_is_offered_only_where_no_tensorflow_uses_the_gpus() -> None:
    arm = Machine(driver="580.95.05", gpus=(H100,), python="3.12", platform="linux-aarch64")
    offered = view(shipped_matrix(), machine=arm).on_jax
    assert offered is not None
    assert offered.command is not None
    assert "jax[cuda13]" in offered.command
    assert view(shipped_matrix(), machine=replace(arm, platform="linux-x86_64")).on_jax is None


def test_wheels_are_offered_only_where_the_libraries_of_the_system_do_not_fit() -> None:
    old = replace(MACHINE, cuda="11.2", cudnn="8.1")
    offered = view(machine=old).with_wheels
    assert offered is not None
    assert offered.release is NEW
    assert view().with_wheels is None
    assert view(machine=None).with_wheels is None


def test_another_release_is_offered_only_where_the_named_one_does_not_run() -> None:
    newer = release("2.20.0", python=">=3.14")
    matrix = small_matrix(OLD, newer)
    needs = requirements(matrix, "2.20.0")
    alone = tuple(item for item in compatible(matrix, MACHINE) if item.release is newer)
    shown = View(matrix=matrix, machine=MACHINE, verdicts=alone, needs=needs)
    assert shown.instead is not None
    assert shown.instead.release is OLD
    assert View(matrix=matrix, machine=None, verdicts=alone, needs=needs).instead is None
    assert View(matrix=matrix, machine=MACHINE, verdicts=alone).instead is None
    mixed = (*alone, *compatible(small_matrix(OLD), MACHINE))
    assert View(matrix=matrix, machine=MACHINE, verdicts=mixed, needs=needs).instead is None
    runs = tuple(item for item in compatible(matrix, MACHINE) if item.release is OLD)
    assert View(matrix=matrix, machine=MACHINE, verdicts=runs, needs=needs).instead is None


def test_nearest_only_lacks_facts_or_has_the_fewest_kinds_of_problems() -> None:
    two = verdict(NEW, ("against", "driver"), ("against", "python"))
    same = verdict(PATCH, ("against", "driver"), ("against", "driver"))
    lacking = verdict(OLD, ("missing", "driver"))
    early = verdict(release("2.20.0rc0"), ("missing", "gpu"))
    assert View(matrix=MATRIX, machine=MACHINE, verdicts=(two, same)).nearest is same
    assert View(matrix=MATRIX, machine=MACHINE, verdicts=(early, two, same, lacking)).nearest is lacking
    assert View(matrix=MATRIX, machine=MACHINE, verdicts=(early,)).nearest is None
    assert View(matrix=MATRIX, machine=MACHINE).nearest is None
    assert View(matrix=MATRIX, machine=MACHINE, verdicts=(two,), needs=requirements(MATRIX, "2.19")).nearest is None


def test_span_joins_neighbours() -> None:
    known = (NEW, PATCH, OLD, release("2.17.0"))
    assert span((NEW,), known) == "2.19.0"
    assert span((NEW, PATCH), known) == "2.18.1 to 2.19.0"
    assert span((NEW, OLD), known) == "2.19.0, 2.18.0"
    assert span((NEW, PATCH, OLD), known) == "2.18.0 to 2.19.0"
    assert span((NEW, OLD, release("2.17.0")), known) == "2.19.0, 2.17.0 to 2.18.0"


def test_span_takes_only_releases_with_the_same_extra_as_neighbours() -> None:
    cuda12 = [release(version, extra="cuda12") for version in ("2.19.0", "2.18.0")]
    cuda13 = [release(version, extra="cuda13", cuda="13.0") for version in ("2.19.0", "2.18.0")]
    known = (cuda13[0], cuda12[0], cuda13[1], cuda12[1])
    assert span(tuple(cuda12), known) == "2.18.0 to 2.19.0"


def test_driver_depends_on_the_gpus_and_the_platform() -> None:
    assert shown_driver(view(machine=None), NEW) == "525.60.13"
    assert shown_driver(view(), NEW) == "525.60.13"
    assert shown_driver(view(machine=Machine(gpus=(H100,))), NEW) == "555.42.02"  # compiles PTX of CUDA 12.5
    assert shown_driver(view(machine=Machine(gpus=(H100,), platform="windows")), NEW) == "555"
    assert shown_driver(view(machine=Machine(gpus=(H100,), platform="macos")), NEW) == "555.42.02"
    assert shown_driver(view(machine=None), release("2.20.0", cuda="14.0")) is None
