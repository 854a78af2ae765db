"""The answer in each format: every value under its label, from a matrix that can be worked out by hand."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from helpers.cases import cases
from helpers.matrices import A100, H100, PTX_8_5, SOURCE, bad, release, small_matrix
from kdoctor.matrix.compatibility import compatible
from kdoctor.matrix.keras import FeatureResult, KerasFeature, KerasRelease, MeasuredFeature
from kdoctor.matrix.model import GpuKind, VersionMatrix
from kdoctor.matrix.needs_rows import all_rows, known_bad_line, known_bad_text, main_rows
from kdoctor.matrix.render import FORMATS, render
from kdoctor.matrix.requirements import requirements
from kdoctor.matrix.verdict import Machine
from kdoctor.matrix.view import Fact, View
from kdoctor.text.canvas import PLAIN, SCREEN, Canvas

OLD, PATCH, NEW = release("2.18.0"), release("2.18.1"), release("2.19.0")
MATRIX = small_matrix(OLD, PATCH, NEW)
MACHINE = Machine(driver="560.28", gpus=(A100,), python="3.11")
FACTS = (Fact("Driver", "560.28", "--driver"), Fact("GPUs", "A100 | one", "--gpu"))
INSTALL = "python -m pip install 'tensorflow[and-cuda]==2.19.0'"
RESULTS: dict[str, FeatureResult] = {"a/one": "right", "a/two": "wrong", "a/three": "wrong", "a/four": "raises"}
MEASURED: dict[str, Any] = {
    "features": {name: MeasuredFeature(feature=name, title=f"{name} of a job") for name in RESULTS},
    "keras_releases": (
        KerasRelease(
            package="keras", release="3.10.0", tensorflow="2.19.0", python="3.11", measured="2026-01-01", source=SOURCE
        ),
    ),
    "keras_features": tuple(
        KerasFeature(
            feature=name, package="keras", releases=("3.10.0",), result=result, observed="seen", source=SOURCE
        )
        for name, result in RESULTS.items()
    ),
}  # fmt: skip


def view(matrix: VersionMatrix = MATRIX, machine: Machine | None = MACHINE, **changes: Any) -> View:
    verdicts = compatible(matrix, machine) if machine else ()
    return View(matrix=matrix, machine=machine, facts=FACTS, verdicts=verdicts, **changes)


def named_release(version: str, matrix: VersionMatrix, machine: Machine | None = None, **changes: Any) -> View:
    """What ``--tensorflow`` shows, with the verdict if a machine is given."""
    needs = requirements(matrix, version)
    verdicts = [item for item in compatible(matrix, machine) if item.release is needs.release] if machine else []
    return View(matrix=matrix, machine=machine, facts=FACTS, verdicts=tuple(verdicts), needs=needs, **changes)


def terminal(shown: View, canvas: Canvas = PLAIN) -> list[str]:
    return render(shown, "terminal", canvas).splitlines()


def rows(lines: list[str]) -> list[list[str]]:
    """The heading and the rows of the table, without the reasons below them."""
    start = next(place for place, line in enumerate(lines) if "Python" in line and "cuDNN" in line)
    end = next(place for place, line in enumerate(lines) if "newest that runs" in line)
    return [line.replace("GPU code", "GPU-code").split() for line in lines[start:end] if not line.startswith("     ")]


def test_facts_come_first_with_their_origin() -> None:
    lines = terminal(view())
    assert lines[0].split(maxsplit=1) == ["Driver", "560.28 (--driver)"]
    assert lines[1].split(maxsplit=1) == ["GPUs", "A100 | one (--gpu)"]
    assert lines[2].split(maxsplit=1) == ["Matrix", "the matrix of a test, 2026-01-01, linux-x86_64"]
    assert lines[3] == ""


def test_release_to_install_is_followed_by_its_commands_and_the_table() -> None:
    lines = terminal(view(installed="2.18.1"))
    assert lines[4:6] == ["Newest compatible release: TensorFlow 2.19.0", f"    {INSTALL}"]
    assert rows(lines) == [
        ["TensorFlow", "Python", "CUDA", "cuDNN", "Driver", "GPU-code", "Verdict"],
        [">", "2.19.0", "3.10-3.12", "12.5.1", "9.3", "525.60.13", "8.0-8.0", "runs"],
        ["*", "2.18.1", "3.10-3.12", "12.5.1", "9.3", "525.60.13", "8.0-8.0", "runs"],
    ]
    assert lines[-1] == "All releases with all reasons: --all"  # 2.18.0 is not shown


def test_nothing_left_out_needs_no_way_to_see_the_rest() -> None:
    assert not [line for line in terminal(view(small_matrix(OLD, NEW))) if "--all" in line]


def test_heading_names_the_framework() -> None:
    jax = small_matrix(jax=(release("0.7.0", distribution="jax", extra="cuda12"),)).of("jax")
    lines = terminal(view(jax))
    assert rows(lines)[0][0] == "JAX"
    assert lines[4:6] == [
        "Newest compatible release: JAX 0.7.0 (CUDA 12.5.1)",
        "    python -m pip install 'jax[cuda12]==0.7.0'",
    ]


def test_every_release_with_its_reasons_is_shown_with_all() -> None:
    late = release("2.20.0", python=">=3.14")
    lines = terminal(view(small_matrix(OLD, PATCH, late), detailed=True))
    assert [row[:2] for row in rows(lines)[1:]] == [["2.20.0", "3.14-3.29"], [">", "2.18.1"], ["2.18.0", "3.10-3.12"]]
    assert "       - wheels exist for Python 3.14 to 3.29, not for Python 3.11" in lines
    assert lines.index("Newest compatible release: TensorFlow 2.18.1") > len(lines) - 4


def test_releases_that_do_not_run_are_grouped_by_their_reason() -> None:
    blocked = [release(f"2.{minor}.0", python=">=3.14") for minor in (19, 20)]
    lines = terminal(view(small_matrix(release("2.17.0", python=">=3.14"), OLD, *blocked)))
    place = lines.index("Do not run")
    assert lines[place - 1] == ""
    assert lines[place + 1] == "  2.19.0 to 2.20.0: no wheel for Python 3.11"  # older ones than the best do not matter
    undecided = terminal(view(small_matrix(OLD), Machine(driver="560.28", gpus=(A100,))))
    place = undecided.index("Not decided")
    assert undecided[place + 1] == "  2.18.0: the Python version; wheels exist for Python 3.10 to 3.12"


def test_reasons_are_left_out_where_they_do_not_fit_and_counted() -> None:
    """Each release was built with another CUDA, of which no driver is known."""
    blocked = [release(f"2.{minor}.0", cuda=f"{minor}.0", requires=()) for minor in range(20, 60)]
    lines = terminal(view(small_matrix(OLD, *blocked)))
    assert len(lines) <= SCREEN
    (more,) = [line for line in lines if line.endswith("--all")]
    shown = sum(line.startswith("  2.") for line in lines)
    assert more == f"{40 - shown} more reasons and all releases: --all"


def test_cpu_and_prerelease_are_stated() -> None:
    early = small_matrix(release("2.20.0rc0"))
    assert "a pre-release, because no final release runs" in " ".join(terminal(view(early))[4:6])
    on_cpu = terminal(view(machine=Machine(gpus=(), python="3.11")))
    assert on_cpu[4] == "Newest compatible release on the CPU: TensorFlow 2.19.0"
    assert rows(on_cpu)[1][-2:] == ["on", "CPU"]


def test_platform_without_gpus_shows_the_command_for_the_cpu_and_its_advice() -> None:
    lines = terminal(view(machine=Machine(driver="560.28", gpus=(A100,), python="3.11", platform="macos")))
    assert lines[4:8] == [
        "No TensorFlow in the matrix uses a GPU here. For the CPU:",
        "    python -m pip install tensorflow==2.19.0",
        "  - Use it:",
        "    python -m pip install x",
    ]


def test_closest_release_is_shown_where_none_runs() -> None:
    lines = terminal(view(machine=Machine(driver="470.1", gpus=(A100,), python="3.9")))
    assert lines[4] == "No TensorFlow in the matrix runs here. Closest: 2.19.0"
    assert lines[5:7] == [
        "  - wheels exist for Python 3.10 to 3.12, not for Python 3.9",
        "  - CUDA 12 needs driver 525.60.13 or newer, not 470.1",
    ]
    assert f"    {INSTALL}" not in lines


def test_release_that_only_lacks_facts_is_shown_with_its_command() -> None:
    lines = terminal(view(machine=Machine(driver="560.28", gpus=(A100,))))
    assert lines[4] == "Inconclusive. Newest release without a known problem: TensorFlow 2.19.0"
    assert lines[5].startswith("  - unknown: the Python version")
    assert f"    {INSTALL}" in lines


def test_other_libraries_of_the_system_have_the_release_with_wheels() -> None:
    lines = terminal(view(machine=Machine(driver="560.28", gpus=(A100,), python="3.11", cuda="11.8")))
    place = lines.index("With the CUDA libraries of pip in place of the system's: TensorFlow 2.19.0")
    assert (lines[place - 1], lines[place + 1]) == ("", f"    {INSTALL}")


def test_way_out_of_an_old_driver_has_the_package_and_its_commands() -> None:
    older = release("2.18.0", ptx=("80", "90"), cubins=(80, 90))
    given = Machine(driver="535.161.08", gpus=(H100,), python="3.11")
    lines = terminal(view(small_matrix(older, NEW), given))
    place = next(n for n, line in enumerate(lines) if line.startswith("To run TensorFlow 2.19.0: driver 555.42.02"))
    assert lines[place - 1] == ""
    text = " ".join(" ".join(lines[place:]).split())
    assert "the build has only PTX of CUDA 12.5.1 for H100 (9.0)" in text
    assert "NVIDIA's package cuda-compat-12-5" in text
    assert "    sudo apt-get install cuda-compat-12-5" in lines
    assert lines.index(f"    {INSTALL}") > place
    alone = terminal(view(small_matrix(NEW), given))
    assert "To run TensorFlow 2.19.0: driver 555.42.02 or newer" in alone  # the reason is printed above it


def test_notes_follow_the_command() -> None:
    caution = bad("odd", {"tensorflow": "==2.19.0"}, job="a large batch")
    lines = terminal(view(small_matrix(NEW, known_bad=(caution,))))
    assert lines[5:7] == [f"    {INSTALL}", "  Note: with a large batch: it crashes; fix: another [odd]"]


def test_ascii_terminal_gets_escapes() -> None:
    odd = (Fact("GPUs", "caf\u00e9", "--gpu"),)
    assert "caf\\xe9" in terminal(replace(view(), facts=odd), Canvas(unicode=False))[0]
    assert "caf\u00e9" in terminal(replace(view(), facts=odd))[0]


def long_facts(number: int) -> tuple[Fact, ...]:
    """Facts that take that many lines of the screen."""
    return tuple(Fact(f"Fact{n}", "known", "--option") for n in range(number))


def around(number: int, **changes: Any) -> list[str]:
    """The short answer below that many lines of facts: six releases run, and one of them has a newer neighbour."""
    runs = [release(f"2.{minor}.0") for minor in range(10, 16)]
    matrix = small_matrix(*runs, release("2.20.0", python=">=3.14"), **changes)
    return terminal(replace(view(matrix), facts=long_facts(number)))


@pytest.mark.parametrize("number", range(4, 24))
def test_short_answer_uses_the_screen_but_not_more(number: int) -> None:
    """The facts, the command and two releases are always shown, and the table before the reasons from four lines on."""
    lines = around(number, **MEASURED)
    table = rows(lines)[1:]
    before = number + 2 + 2  # the facts, the matrix and a blank line, the release and its command
    room = SCREEN - before - 2  # how to see the rest takes two lines
    fitting = max(room - 3 - 3, 2)  # around the table three lines, and the reason with its heading
    assert len(table) == min(6, fitting)
    shows_reason = "Do not run" in lines
    assert shows_reason == (room - 3 - len(table) >= 3)
    has_keras = any(line.startswith("Keras on several") for line in lines)
    keras_lines = sum(line.startswith(("  keras", "    ")) for line in lines[lines.index("") :]) if has_keras else 0
    assert not has_keras or keras_lines > 0
    if room >= 8:
        assert len(lines) <= SCREEN
    assert lines[-1].endswith("--all")
    assert lines[-1].startswith("All releases" if shows_reason else "1 more reason ")


def test_table_that_does_not_fit_begins_with_the_release_to_install() -> None:
    """Of six rows two fit. The newest release here is a pre-release, which is not the one to install."""
    runs = [release(f"2.{minor}.0") for minor in range(10, 16)]
    matrix = small_matrix(*runs, release("2.16.0rc0"))
    cut = rows(terminal(replace(view(matrix), facts=long_facts(20))))[1:]
    assert [row[:2] for row in cut] == [[">", "2.15.0"], ["2.14.0", "3.10-3.12"]]
    whole = rows(terminal(replace(view(matrix), facts=long_facts(4))))[1:]
    assert [row[0] for row in whole][:2] == ["2.16.0rc0", ">"]


def test_all_names_every_feature_of_keras() -> None:
    many = {f"a/{n}": MeasuredFeature(feature=f"a/{n}", title=f"feature {n}") for n in range(6)}
    features = tuple(
        KerasFeature(
            feature=name, package="keras", releases=("3.10.0",), result="wrong", observed="seen", source=SOURCE
        )
        for name in many
    )
    matrix = small_matrix(OLD, NEW, **{**MEASURED, "features": many, "keras_features": features})
    short = " ".join(" ".join(terminal(view(matrix))).split())
    assert "feature 2 and 3 more" in short
    long = " ".join(" ".join(terminal(view(matrix, detailed=True))).split())
    assert "feature 4, feature 5" in long


@pytest.mark.parametrize("number", range(1, 17))
def test_known_problems_fill_the_screen_of_a_release(number: int) -> None:
    """The more facts are above, the fewer problems are listed; below one line, only the last line names them."""
    shown = replace(named_release("2.19", problems(30)), facts=long_facts(number))
    lines = terminal(shown)
    listed = sum(line.startswith("  - odd") for line in lines)
    fixed = number + 2 + 1 + len(list(main_rows(shown.needs or requirements(MATRIX, "2.19")))) + 2
    wrapped = sum(line.startswith(" " * 11) for line in lines)  # second lines of the requirements, and unlabelled ones
    room = SCREEN - (fixed - 1 + wrapped) - 5
    assert listed == max(room, 0)
    assert lines[-1].startswith("Packages" if room > 0 else "Known problems, packages")
    assert ("Known problems (kdoctor explain ID)" in lines) == (room > 0)
    assert (f"  and {30 - listed} more" in lines) == (room > 0)


def test_keras_on_replicas_is_in_every_format_for_people() -> None:
    measured = small_matrix(OLD, NEW, **MEASURED)
    lines = terminal(view(measured))
    place = next(n for n, line in enumerate(lines) if line.startswith("Keras on several replicas"))
    text = " ".join(line.strip() for line in lines[place + 1 :])
    assert text.startswith("keras 3.10.0: 3 of 4 measured features fail: wrong without an error with a/two of a job, ")
    assert "raises an error with a/four of a job" in text
    for shown in (view(measured), named_release("2.19", measured)):
        page = render(shown, "markdown")
        assert "\nKeras on several replicas, measured:\n\n- keras 3.10.0: 3 of 4 measured features fail" in page
        assert "Keras on several replicas" in "\n".join(terminal(shown))
    assert "Keras on several replicas" not in render(view(), "markdown")
    (only,) = json.loads(render(view(measured), "json"))["keras"]
    assert (only["package"], only["release"], only["features"]) == ("keras", "3.10.0", 4)
    assert sorted(item["feature"] for item in only["defects"]) == ["a/four", "a/three", "a/two"]


# What one release needs.


def test_requirements_name_every_part() -> None:
    item = release("2.19.0", tf_keras="2.19.0", note="read it", kernel_gen=PTX_8_5.model_dump(), verified="2026-01-02")
    needs = requirements(small_matrix(item), "2.19")
    found = all_rows(needs)
    assert dict(row for row in found if row[0]) == {
        "Driver": "525.60.13 or newer (CUDA 12.5.1)",
        "Python": "3.10-3.12",
        "glibc": "2.27 or newer",
        "GPUs": "with machine code: 8.0 (A100, A30)",
        "Keras": "keras>=3.10.0",
        "Keras 2": "tf-keras==2.19.0, with TF_USE_LEGACY_KERAS=1",
        "Packages": "numpy<2.2,>=1.26, protobuf",
        "[and-cuda]": "nvidia-cudnn-cu12>=9.3",
        "cuDNN": "built with 9.3",
        "NCCL": "2.25.1, built into TensorFlow, which ignores an installed NCCL (measured)",
        "Libraries": "libcudart.so.12",
        "Note": "read it",
    }
    unlabelled = [text for label, text in all_rows(needs) if not label]
    assert unlabelled == ["555.42.02 or newer for GPUs that use PTX", "with PTX, compiled by the driver: 9.0 (H100)"]


@cases((None, "numpy<2; python_version < '3.12', numpy>=2"), ("3.11.7", "numpy<2, numpy>=2"), ("3.12", "numpy>=2"))
def test_packages_are_those_of_the_python(python: str | None, shown: str) -> None:
    wanted = release("2.19.0", requires=("numpy<2; python_version < '3.12'", "numpy>=2"))
    assert dict(all_rows(requirements(small_matrix(wanted), "2.19"), python))["Packages"] == shown


def test_short_requirements_name_what_decides() -> None:
    needs = requirements(small_matrix(release("2.19.0", tf_keras="2.19.0")), "2.19")
    assert list(main_rows(needs)) == [
        ("Driver", "525.60.13 or newer; 555.42.02 or newer for GPUs that use PTX"),
        ("Python", "3.10-3.12, glibc 2.27 or newer, a processor with AVX"),
        ("Built with", "CUDA 12.5.1, cuDNN 9.3, NCCL 2.25.1, built into TensorFlow, which ignores an installed NCCL"),
        ("GPUs", "with machine code: 8.0"),
        ("", "with PTX, compiled by the driver: 9.0 (H100)"),
        ("Keras", "keras>=3.10.0; Keras 2 as tf-keras==2.19.0"),
    ]


def test_first_three_models_of_a_capability_are_named() -> None:
    kind = GpuKind(capability="8.0", architecture="Ampere", models=("X1", "X2", "X3", "X4"), source=SOURCE)
    rows_ = dict(all_rows(requirements(small_matrix(NEW, gpus=(kind,)), "2.19")))
    assert rows_["GPUs"] == "with machine code: 8.0 (X1, X2, X3)"


def test_requirements_that_are_not_known_say_so() -> None:
    item = release("2.19.0", cuda="14.0", cudnn=None, requires=(), and_cuda=None, cubins=(60,), ptx=(), runpath=())
    needs = requirements(small_matrix(item), "2.19")
    short = dict(main_rows(needs))
    assert short["Driver"] == "not known or newer; not known or newer for GPUs that use PTX"
    assert short["GPUs"] == "with machine code: none"
    assert short[""].endswith(": none")
    assert short["Keras"] == "any"
    assert "cuDNN not stated" in short["Built with"]
    full = dict(all_rows(needs))
    assert full["Driver"] == "not known or newer (CUDA 14.0)"
    assert ("", "not known or newer for GPUs that use PTX") in list(all_rows(needs))
    assert full["GPUs"] == "with machine code: none"
    assert full["Keras"] == "any"
    assert "no such extra" in full["[and-cuda]"]
    assert full["cuDNN"] == "not stated by the build"
    assert not {"Keras 2", "Note"} & set(full)


def test_excluded_gpus_are_listed() -> None:
    """A combination of the release with a GPU that crashes takes that GPU out."""
    row = bad("no_hopper", {"tensorflow": "==2.19.0", "capability": "==9.0"})
    needs = requirements(small_matrix(OLD, NEW, known_bad=(row,)), "2.19")
    assert [kind.capability for kind in needs.excluded] == ["9.0"]
    assert needs.by_ptx == ()
    assert ("", "excluded, although it has code for them: 9.0 (H100)") in list(all_rows(needs))
    assert not [text for _, text in all_rows(requirements(MATRIX, "2.19")) if text.startswith("excluded")]
    assert requirements(small_matrix(OLD, NEW, known_bad=(row,)), "2.18.0").excluded == ()


def test_known_problem_names_the_versions_and_the_job() -> None:
    row = bad("odd", {"tensorflow": "==2.19.0", "keras": "<3.5"})
    assert known_bad_line(row) == "odd: tensorflow ==2.19.0, keras <3.5"
    assert known_bad_text(row) == "odd (tensorflow ==2.19.0, keras <3.5): it crashes. Fix: another."
    job = bad("odd", {"tensorflow": "==2.19.0"}, job="XLA")
    assert known_bad_line(job) == "odd: tensorflow ==2.19.0, with XLA"
    assert known_bad_text(job) == "odd (tensorflow ==2.19.0, with XLA): it crashes. Fix: another."


def problems(number: int) -> VersionMatrix:
    return small_matrix(OLD, NEW, known_bad=tuple(bad(f"odd{n}", {"tensorflow": "==2.19.0"}) for n in range(number)))


def test_page_of_a_release_has_its_requirements_and_the_command() -> None:
    lines = terminal(named_release("2.19", MATRIX))
    assert lines[4] == "Requirements of TensorFlow 2.19.0"
    assert lines[5].split(maxsplit=1)[0] == "Driver"
    place = lines.index("Install")
    assert lines[place + 1] == f"    {INSTALL}"
    assert lines[-1] == "Packages, libraries, all GPUs and sources: --all"
    assert not [line for line in lines if line.startswith(("On the machine", "Known problems"))]


def test_page_with_everything_has_the_sources() -> None:
    item = release("2.19.0", same_as="2.18.0", verified="2026-01-02, all parts", source=("wheel", "a page"))
    row = bad("odd", {"tensorflow": "==2.19.0"})
    matrix = small_matrix(OLD, item, known_bad=(row,), sources={"wheel": "the wheel itself"})
    lines = terminal(named_release("2.19", matrix, detailed=True))
    assert "Known problems" in lines
    assert "  - odd (tensorflow ==2.19.0): it crashes. Fix: another." in lines
    labelled = [line.split(maxsplit=1) for line in lines]
    assert ["Source", "the wheel itself"] in labelled
    assert ["Source", "a page"] in labelled
    assert ["Inferred", "values that were not read from it are those of 2.18.0"] in labelled
    assert ["Verified", "2026-01-02, all parts"] in labelled
    assert ["glibc", "2.27 or newer"] in labelled
    plain = terminal(named_release("2.18.0", matrix, detailed=True))
    assert not [line for line in plain if line.startswith(("Inferred", "Verified"))]
    assert "Known problems" not in plain


def test_verdict_on_the_named_release_has_the_reasons_and_what_else_runs() -> None:
    late = release("2.20.0", python=">=3.14")
    lines = terminal(named_release("2.20.0", small_matrix(OLD, late), MACHINE))
    place = lines.index("On the machine above: no")
    assert lines[place - 1 : place + 3] == [
        "",
        "On the machine above: no",
        "  - wheels exist for Python 3.14 to 3.29, not for Python 3.11",
        "  - newest release that runs here: TensorFlow 2.18.0 (leave out --tensorflow)",
    ]
    runs = terminal(named_release("2.18.0", small_matrix(OLD, late), MACHINE))
    assert "On the machine above: runs" in runs
    assert f"    {INSTALL}".replace("2.19.0", "2.18.0") in runs
    unknown = terminal(named_release("2.18.0", small_matrix(OLD, late), Machine(gpus=(A100,))))
    assert "On the machine above: unknown" in unknown


def test_verdict_names_the_package_of_an_old_driver() -> None:
    given = Machine(driver="535.161.08", gpus=(H100,), python="3.11")
    lines = terminal(named_release("2.19", MATRIX, given))
    text = " ".join(" ".join(lines).split())
    assert "without a newer driver: NVIDIA's forward-compatibility package cuda-compat-12-5, on" in text


def test_reasons_of_a_named_release_that_do_not_fit_are_counted() -> None:
    gpus = tuple(replace(A100, name=f"X{n}", capability=f"{n // 10}.{n % 10}") for n in range(20, 60))
    given = Machine(driver="560.28", gpus=gpus, python="3.11")
    lines = terminal(named_release("2.19", MATRIX, given))
    assert len(lines) <= SCREEN
    start = lines.index("On the machine above: no")
    (more,) = [line for line in lines if line.endswith("more: --all")]
    shown = sum(line.startswith("  - ") for line in lines[start : lines.index(more)])
    (verdict,) = [item for item in compatible(MATRIX, given) if item.release is NEW]
    assert more == f"  - and {len(verdict.against) - shown} more: --all"
    everything = terminal(named_release("2.19", MATRIX, given, detailed=True))
    assert not [line for line in everything if line.endswith("more: --all")]


# Markdown and JSON.


def cells_of(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def test_markdown_has_every_release_and_the_command() -> None:
    caution = bad("odd", {"tensorflow": "==2.19.0"}, job="XLA")
    late = release("2.20.0", python=">=3.14")
    text = render(view(small_matrix(OLD, NEW, late, known_bad=(caution,)), installed="2.18.0"), "markdown")
    lines = text.splitlines()
    assert lines[:2] == ["## Compatible TensorFlow releases", ""]
    assert lines[2].replace("\\", "") == "- Driver: 560.28 (--driver)"
    assert lines[4].replace("\\", "") == "- Matrix: the matrix of a test, 2026-01-01, linux-x86_64"
    table = [cells_of(line) for line in lines if line.startswith("|")]
    assert table[0] == [
        "", "TensorFlow", "Python", "CUDA", "cuDNN", "oldest driver", "machine code for", "Keras", "NumPy", "protobuf",
        "verdict",
    ]  # fmt: skip
    assert {len(row) for row in table} == {11}
    assert set(table[1]) == {"---"}
    assert [(row[0].replace("\\", ""), row[1], row[-1].partition(":")[0]) for row in table[2:]] == [
        ("", "2.20.0", "no"), (">", "2.19.0", "runs"), ("*", "2.18.0", "runs")
    ]  # fmt: skip
    assert table[2][-1].partition(": ")[2].startswith("wheels exist for Python 3.14")
    assert r"\> newest that runs, \* installed." in lines
    place = lines.index("```sh")
    assert lines[place - 1 : place + 4] == ["", "```sh", INSTALL, "```", ""]
    assert lines[place + 4].startswith("- with XLA: it crashes")


def test_markdown_without_a_release_that_runs_has_a_command_only_if_facts_are_missing() -> None:
    lacking = render(view(machine=Machine(driver="560.28", gpus=(A100,))), "markdown")
    assert INSTALL in lacking
    assert "```sh" not in render(view(machine=Machine(driver="470.1", gpus=(A100,), python="3.11")), "markdown")


def test_markdown_of_a_release_has_its_requirements_and_verdict() -> None:
    caution = bad("odd", {"tensorflow": "==2.19.0"}, job="XLA")
    matrix = small_matrix(OLD, NEW, known_bad=(caution,))
    lines = render(named_release("2.19", matrix, MACHINE), "markdown").splitlines()
    assert lines[0] == "## Requirements of TensorFlow 2.19.0"
    table = [cells_of(line) for line in lines if line.startswith("|")]
    assert table[:2] == [["", ""], ["---", "---"]]
    assert ["glibc", "2.27 or newer"] in table
    assert lines[lines.index("```sh") + 1] == INSTALL
    assert any(line.startswith("- odd (tensorflow") for line in lines)
    place = lines.index("On the machine above: runs")
    assert (lines[place - 1], lines[place + 1]) == ("", "")
    assert lines[place + 2].startswith("- with XLA: it crashes")
    alone = render(named_release("2.19", matrix), "markdown")
    assert INSTALL in alone
    assert "On the machine above" not in alone


def test_json_has_the_machine_and_every_verdict() -> None:
    late = release("2.20.0", python=">=3.14")
    text = render(view(small_matrix(OLD, NEW, late), installed="2.18.0"), "json")
    document = json.loads(text)
    assert (document["schema"], text.splitlines()[1][:3]) == ("kdoctor/matrix-answer/v1", '  "')
    assert document["matrix"] == {"name": "the matrix of a test", "updated": "2026-01-01", "platform": "linux-x86_64"}
    assert document["machine"]["driver"] == "560.28"
    assert document["machine"]["tensorflow_installed"] == "2.18.0"
    assert document["machine"]["unknown_gpus"] == []
    assert document["machine"]["facts"][0] == {"label": "Driver", "value": "560.28", "origin": "--driver"}
    assert (document["best"]["version"], document["best"]["install"]["command"]) == ("2.19.0", INSTALL)
    found = [(row["version"], row["outcome"], len(row["against"])) for row in document["releases"]]
    assert found == [("2.20.0", "does-not-run", 1), ("2.19.0", "runs", 0), ("2.18.0", "runs", 0)]
    assert document["releases"][1]["oldest_driver"] == "525.60.13"
    assert "needs" not in document


def test_json_of_a_release_has_what_it_needs() -> None:
    document = json.loads(render(named_release("2.19", MATRIX), "json"))
    needs = document["needs"]
    assert (document["machine"], document["best"], document["releases"]) == (None, None, [])
    assert (needs["version"], needs["oldest_driver"], needs["ptx_driver"]) == ("2.19.0", "525.60.13", "555.42.02")
    assert (needs["capabilities_by_machine_code"], needs["capabilities_by_ptx"]) == (["8.0"], ["9.0"])
    assert needs["libraries"] == {"cudart": "libcudart.so.12"}
    assert needs["install"] == {"command": INSTALL, "commands": [INSTALL]}


def test_escapes_of_a_terminal_are_cleaned() -> None:
    odd = (Fact("GPUs", "\x1b[31mred", "--gpu"),)
    for form in FORMATS:
        assert "\x1b" not in render(replace(view(), facts=odd), form)


@pytest.mark.parametrize(("installed", "shown"), [("2.19.0", False), ("2.18.7", False), ("?", False), ("2.19.1", True)])
def test_installed_release_that_is_newer_than_the_matrix_is_not_replaced(installed: str, *, shown: bool) -> None:
    lines = terminal(view(installed=installed))
    assert (f"    kdoctor matrix add --wheel tensorflow=={installed} > own.yaml" in lines) is shown
    assert (f"    {INSTALL}" in lines) is not shown
