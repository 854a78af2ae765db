"""The parts of the answer on a terminal, from a matrix of a few rows."""

from typing import Any

import pytest

from helpers.cases import cases
from helpers.matrices import A100, H100, SOURCE, bad, release, small_matrix
from kdoctor.matrix import terminal
from kdoctor.matrix.compatibility import compatible, judge
from kdoctor.matrix.keras import KerasFeature, KerasRelease
from kdoctor.matrix.model import VersionMatrix
from kdoctor.matrix.render import render
from kdoctor.matrix.requirements import requirements
from kdoctor.matrix.verdict import Machine
from kdoctor.matrix.view import Fact, View
from kdoctor.text.canvas import PLAIN, SCREEN, Canvas

MACHINE = Machine(driver="560.28.03", gpus=(A100,), python="3.11")
VERSIONS = [f"2.{minor}.0" for minor in range(1, 31)]


def page(matrix: VersionMatrix, machine: Machine | None = MACHINE, canvas: Canvas = PLAIN, **changes: Any) -> list[str]:
    verdicts = compatible(matrix, machine) if machine else ()
    view = View(**{"matrix": matrix, "machine": machine, "verdicts": verdicts, **changes})
    return render(view, "terminal", canvas).splitlines()


def listed(lines: list[str]) -> list[str]:
    """The releases of the table, in order."""
    rows = (line.removeprefix(">").removeprefix("*").split() for line in lines)
    return [row[0] for row in rows if row and row[0] in VERSIONS]


def matrix_of(number: int, **changes: Any) -> VersionMatrix:
    return small_matrix(*(release(version, **changes) for version in VERSIONS[:number]))


def test_answer_has_facts_the_command_and_a_table() -> None:
    lines = page(matrix_of(2), facts=(Fact("Driver", "560.28.03", "--driver"),), installed="2.1.0")
    assert lines[0] == "Driver     560.28.03 (--driver)"
    assert lines[1].startswith("Matrix     the matrix of a test, 2026-01-01, linux-x86_64")
    assert lines[2] == ""
    assert lines[3] == "Newest compatible release: TensorFlow 2.2.0"
    assert lines[4] == "    python -m pip install 'tensorflow[and-cuda]==2.2.0'"
    assert lines[5] == ""
    assert lines[6].split() == ["TensorFlow", "Python", "CUDA", "cuDNN", "Driver", "GPU", "code", "Verdict"]
    assert lines[7].split() == [">", "2.2.0", "3.10-3.12", "12.5.1", "9.3", "525.60.13", "8.0-8.0", "runs"]
    assert lines[8].split() == ["*", "2.1.0", "3.10-3.12", "12.5.1", "9.3", "525.60.13", "8.0-8.0", "runs"]
    assert lines[9].strip().startswith("> newest that runs, * installed")
    assert len(lines) == 10  # everything is shown


@pytest.mark.parametrize("number", [1, 5, 12, 13, 14, 15, 16, 17, 18, 19, 20, 30])
def test_as_many_releases_as_fit_are_listed(number: int) -> None:
    lines = page(matrix_of(number))
    assert len(lines) <= SCREEN
    shown = listed(lines)
    assert shown == VERSIONS[:number][::-1][: len(shown)]
    is_all = len(shown) == number
    assert (lines[-1] == "All releases with all reasons: --all") is not is_all
    assert is_all is (number <= SCREEN - 3 - 2 - 2 - 3)  # the facts, the advice, the note, and around the table


def test_reasons_that_do_not_fit_are_counted() -> None:
    newer = tuple(release(version, glibc=f"2.{90 + place}") for place, version in enumerate(VERSIONS[1:26]))
    machine = Machine(driver="560.28.03", gpus=(A100,), python="3.11", glibc="2.31")
    lines = page(small_matrix(release("2.1.0"), *newer), machine)
    shown = [line for line in lines if "the wheel needs glibc" in line]
    assert [line.split(":")[0].strip() for line in shown] == VERSIONS[1:26][::-1][: len(shown)]
    assert len(shown) >= 4
    assert lines[-1] == f"{len(newer) - len(shown)} more reasons and all releases: --all"
    assert len(lines) == SCREEN


def test_releases_with_one_reason_are_one_line() -> None:
    newer = tuple(release(version, python=">=3.12") for version in VERSIONS[1:26])
    lines = page(small_matrix(release("2.1.0"), *newer))
    assert [line for line in lines if "no wheel" in line] == ["  2.2.0 to 2.26.0: no wheel for Python 3.11"]
    assert lines[-1] == "All releases with all reasons: --all"


def test_each_kind_of_outcome_has_one_heading() -> None:
    rows = (release("2.1.0"), release("2.2.0", python=">=3.13"), release("2.3.0", cuda="13.0"))
    lines = page(small_matrix(*rows))
    place = lines.index("Do not run")
    assert lines[place + 1].startswith("  2.2.0: no wheel for Python 3.11")
    place = lines.index("Not decided")
    assert lines[place + 1].startswith("  2.3.0: ")
    assert lines.count("Do not run") == lines.count("Not decided") == 1
    # Older releases are of no interest where a newer one runs.
    assert "Do not run" not in page(small_matrix(rows[1], release("2.3.0")))


def test_all_lists_each_release_with_its_reasons() -> None:
    rows = (release("2.1.0"), release("2.2.0", python=">=3.13", glibc="2.99"))
    machine = Machine(driver="560.28.03", gpus=(A100,), python="3.11", glibc="2.31")
    lines = page(small_matrix(*rows), machine, detailed=True)
    assert [line.strip()[:2] for line in lines if line.startswith("       - ")] == ["- "] * 2
    assert listed(lines) == ["2.2.0", "2.1.0"]
    assert lines[-2:] == [
        "Newest compatible release: TensorFlow 2.1.0",
        "    python -m pip install 'tensorflow[and-cuda]==2.1.0'",
    ]
    assert not [line for line in lines if "--all" in line]


@cases(
    ((release("2.1.0"),), Machine(gpus=(), python="3.11"), "Newest compatible release on the CPU"),
    ((release("2.1.0rc1"),), MACHINE, "Newest compatible release: TensorFlow 2.1.0rc1, a pre-release"),
    ((release("2.1.0"),), Machine(driver="560.28.03", gpus=(A100,)), "Inconclusive. Newest release without"),
    ((release("2.1.0", python=">=3.13"),), MACHINE, "No TensorFlow in the matrix runs here. Closest: 2.1.0"),
    (
        (release("2.14.0"),),
        Machine(driver="560.28.03", gpus=(A100,), python="3.11", platform="macos"),
        "No TensorFlow in the matrix uses a GPU here. For the CPU:",
    ),
)
def test_advice_begins_with_the_outcome(rows: tuple[Any, ...], machine: Machine, first: str) -> None:
    lines = page(small_matrix(*rows), machine)
    assert lines[lines.index("") + 1].startswith(first)
    has_command = any(line.startswith("    python -m pip install") for line in lines)
    assert has_command is not first.startswith("No TensorFlow in the matrix runs")


def test_advice_of_a_platform_has_its_command_below() -> None:
    machine = Machine(driver="560.28.03", gpus=(A100,), python="3.11", platform="macos")
    lines = page(small_matrix(release("2.14.0")), machine)
    place = lines.index("  - Use it:")
    assert lines[place + 1] == "    python -m pip install x"


def test_newer_release_has_its_driver_and_package() -> None:
    lines = page(
        small_matrix(release("2.1.0", cubins=(90,)), release("2.2.0")),
        Machine(driver="535.161.08", gpus=(H100,), python="3.11"),
    )
    place = next(number for number, line in enumerate(lines) if line.startswith("To run TensorFlow 2.2.0: driver 555"))
    assert "only PTX" in " ".join(lines[place : place + 3])
    commands = [line.strip() for line in lines if line.startswith("    ") and "cuda-compat" not in line]
    assert "    sudo apt-get install cuda-compat-12-5" in lines
    assert [command for command in commands if command.startswith("python")] == [
        "python -m pip install 'tensorflow[and-cuda]==2.1.0'",
        "python -m pip install 'tensorflow[and-cuda]==2.2.0'",
    ]


def test_wheels_of_pip_in_place_of_the_libraries_of_the_system() -> None:
    machine = Machine(driver="560.28.03", gpus=(A100,), python="3.11", cuda="11.8")
    lines = page(small_matrix(release("2.1.0")), machine)
    place = next(number for number, line in enumerate(lines) if line.startswith("With the CUDA libraries of pip"))
    assert lines[place - 1] == ""
    assert "    python -m pip install 'tensorflow[and-cuda]==2.1.0'" in lines[place:]


ROWS = tuple(bad(f"problem_{number}", {"tensorflow": "==2.1.0"}, effect="unproven") for number in range(30))


def needs_page(*known: Any, machine: Machine | None = None, detailed: bool = False, **changes: Any) -> list[str]:
    matrix = small_matrix(release("2.1.0", **changes), release("2.2.0"), known_bad=known)
    needs = requirements(matrix, "2.1.0")
    verdicts = (judge(matrix, needs.release, machine),) if machine else ()
    view = View(matrix=matrix, machine=machine, verdicts=verdicts, needs=needs, detailed=detailed)
    return render(view, "terminal", PLAIN).splitlines()


@pytest.mark.parametrize("number", [0, 1, 2, 3, 5, 8, 30])
def test_known_problems_that_do_not_fit_are_counted(number: int) -> None:
    lines = needs_page(*ROWS[:number])
    assert len(lines) <= SCREEN
    shown = [line for line in lines if line.startswith("  - problem_")]
    assert [line.split(":")[0] for line in shown] == [f"  - problem_{place}" for place in range(len(shown))]
    assert ("Known problems (kdoctor explain ID)" in lines) is (number > 0)
    assert [line for line in lines if line.endswith(" more")] == (
        [f"  and {number - len(shown)} more"] if len(shown) < number else []
    )
    assert lines[-1] == "Packages, libraries, all GPUs and sources: --all"


def test_all_known_problems_and_sources_are_in_the_long_form() -> None:
    lines = needs_page(*ROWS, detailed=True, verified="2026-01-01, all of it", same_as="2.0.0")
    assert len([line for line in lines if line.startswith("  - problem_")]) == 30
    assert "Known problems" in lines
    assert [line.split()[0] for line in lines[-3:]] == ["Source", "Inferred", "Verified"]
    assert not [line for line in lines if "--all" in line]
    few = needs_page(detailed=True)
    assert "Known problems" not in few
    assert few[-1].split()[0] == "Source"


@cases(
    (MACHINE, "runs"), (Machine(driver="470.1", gpus=(A100,), python="3.9"), "no"), (Machine(gpus=(A100,)), "unknown")
)
def test_named_release_is_judged_on_the_machine(machine: Machine, outcome: str) -> None:
    lines = needs_page(machine=machine)
    assert f"On the machine above: {outcome}" in lines
    assert lines[3 if lines[1] else 2].startswith("Requirements of TensorFlow 2.1.0")
    assert not [line for line in needs_page() if line.startswith("On the machine above")]


def test_reasons_of_a_named_release_that_do_not_fit_are_counted() -> None:
    rows = tuple(bad(f"problem_{number}", {"tensorflow": "==2.1.0"}) for number in range(30))
    short, long = (needs_page(*rows, machine=MACHINE, detailed=detailed) for detailed in (False, True))
    place = short.index("On the machine above: no")
    shown = [line for line in short[place:] if line.startswith("  - it crashes")]
    assert f"  - and {30 - len(shown)} more: --all" in short
    assert shown
    assert len(short) <= SCREEN
    assert len([line for line in long if line.startswith("  - it crashes")]) == 30
    assert not [line for line in long if "more: --all" in line]


def test_other_release_is_offered_where_the_named_one_does_not_run() -> None:
    lines = needs_page(machine=MACHINE, python=">=3.13")
    assert "  - newest release that runs here: TensorFlow 2.2.0 (leave out --tensorflow)" in lines
    assert not [line for line in needs_page(machine=MACHINE) if "newest release that runs" in line]


KERAS = {
    "keras_releases": (
        KerasRelease(
            package="keras", release="3.12.0", tensorflow="2.2.0", python="3.11", measured="2026-01-01", source=SOURCE
        ),
    ),
    "keras_features": tuple(
        KerasFeature(
            feature=f"x/{number}", package="keras", releases=("3.12.0",), result="wrong", observed="x", source=SOURCE
        )
        for number in range(5)
    ),
}


def test_keras_on_several_replicas_is_shown_where_it_fits() -> None:
    matrix = small_matrix(release("2.1.0"), **KERAS)
    lines = page(matrix)
    place = lines.index("Keras on several replicas, measured (kdoctor explain FEATURE)")
    assert lines[place - 1] == ""
    assert "keras 3.12.0: 5 of 5 measured features fail" in lines[place + 1]
    text = " ".join(lines[place:])
    assert [f"x/{number}" in text for number in range(5)] == [True] * 3 + [False] * 2
    detailed = " ".join(page(matrix, detailed=True))
    assert all(f"x/{number}" in detailed for number in range(5))
    full = page(small_matrix(*(release(version) for version in VERSIONS), **KERAS))
    assert len(full) <= SCREEN
    assert not [line for line in full if line.startswith("Keras on several")]


@pytest.mark.parametrize(("length", "rows"), [(0, 1), (1, 1), (80, 1), (81, 2), (160, 2), (161, 3)])
def test_rows_that_a_line_takes(length: int, rows: int) -> None:
    assert terminal._rows("x" * length, Canvas(width=80)) == rows
