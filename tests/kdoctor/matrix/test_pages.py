"""The answer in each format, from a matrix that can be worked out by hand. Whole pages are reviewed snapshots."""

import datetime as dt
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from helpers.cases import cases
from helpers.matrices import A100, H100, PTX_8_5, SOURCE, bad, release, small_matrix
from kdoctor.matrix.compatibility import compatible
from kdoctor.matrix.keras import FeatureResult, KerasFeature, KerasRelease, MeasuredFeature
from kdoctor.matrix.model import GpuKind, Nccl, VersionMatrix
from kdoctor.matrix.needs_rows import all_rows, main_rows
from kdoctor.matrix.render import FORMATS, render
from kdoctor.matrix.requirements import requirements
from kdoctor.matrix.verdict import Machine
from kdoctor.matrix.view import Fact, View
from kdoctor.text.canvas import PLAIN, SCREEN, Canvas

OLD, PATCH, NEW = release("2.18.0"), release("2.18.1"), release("2.19.0")
LATE = release("2.20.0", python=">=3.14")
MATRIX = small_matrix(OLD, PATCH, NEW)
MACHINE = Machine(driver="560.28", gpus=(A100,), python="3.11")
CPU = Machine(gpus=(), python="3.11")
OLD_DRIVER = Machine(driver="535.161.08", gpus=(H100,), python="3.11")
FACTS = (Fact("Driver", "560.28", "--driver"), Fact("GPUs", "A100 | one", "--gpu"))
INSTALL = "python -m pip install 'tensorflow[and-cuda]==2.19.0'"


def measured(**results: FeatureResult) -> dict[str, Any]:
    """What a matrix says about these features of Keras 3.10."""
    of_release = {"package": "keras", "source": SOURCE}
    shared = {"tensorflow": "2.19.0", "python": "3.11", "measured": "2026-01-01"}
    return {
        "features": {name: MeasuredFeature(feature=name, title=f"{name} of a job") for name in results},
        "keras_releases": (KerasRelease.model_validate({**of_release, **shared, "release": "3.10.0"}),),
        "keras_features": tuple(
            KerasFeature.model_validate(
                {**of_release, "feature": name, "releases": ("3.10.0",), "result": result, "observed": "seen"}
            )
            for name, result in results.items()
        ),
    }


MEASURED = measured(one="right", two="wrong", three="wrong", four="raises")
WRONG: FeatureResult = "wrong"
DEFECTS = measured(**{f"feature{n}": WRONG for n in range(6)})


def view(matrix: VersionMatrix = MATRIX, machine: Machine | None = MACHINE, **changes: Any) -> View:
    verdicts = compatible(matrix, machine) if machine else ()
    return View(**{"matrix": matrix, "machine": machine, "facts": FACTS, "verdicts": verdicts, **changes})


def named_release(version: str, matrix: VersionMatrix = MATRIX, machine: Machine | None = None, **changes: Any) -> View:
    """What ``--tensorflow`` shows, with the verdict if a machine is given."""
    needs = requirements(matrix, version)
    verdicts = [item for item in compatible(matrix, machine) if item.release is needs.release] if machine else []
    return view(matrix, machine, verdicts=tuple(verdicts), needs=needs, **changes)


def terminal(shown: View, canvas: Canvas = PLAIN) -> list[str]:
    return render(shown, "terminal", canvas).splitlines()


def rows(lines: list[str]) -> list[list[str]]:
    """The heading and the rows of the table, without the reasons below them."""
    start = next(place for place, line in enumerate(lines) if "Python" in line and "cuDNN" in line)
    end = next(place for place, line in enumerate(lines) if "newest that runs" in line)
    return [line.replace("GPU code", "GPU-code").split() for line in lines[start:end] if not line.startswith("     ")]


def problems(number: int) -> VersionMatrix:
    return small_matrix(OLD, NEW, known_bad=tuple(bad(f"odd{n}", {"tensorflow": "==2.19.0"}) for n in range(number)))


def long_facts(number: int) -> tuple[Fact, ...]:
    """Facts that take that many lines of the screen."""
    return tuple(Fact(f"Fact{n}", "known", "--option") for n in range(number))


SIX = [release(f"2.{minor}.0") for minor in range(10, 16)]
"""Six releases that run."""
BEFORE = [release(f"2.{minor}.0", python=">=3.14") for minor in (17, 19)]
WITH_EARLY = small_matrix(*SIX, release("2.16.0rc0"))
MANY = [release(f"2.{minor}.0", cuda=f"{minor}.0", requires=()) for minor in range(20, 60)]
"""Each was built with another CUDA, of which no driver is known."""
OTHER_CUDA = tuple(replace(A100, name=f"X{n}", capability=f"{n // 10}.{n % 10}") for n in range(20, 60))
NO_HOPPER = bad("no_hopper", {"tensorflow": "==2.19.0", "capability": "==9.0"})
OTHERS = (bad("old_keras", {"tensorflow": "==2.19.0", "keras": "<3.5"}), bad("other", {"tensorflow": "==2.18.0"}))
"""They do not concern 2.19, which requires Keras 3.10 or newer."""
CRASHES = bad("crashes", {"tensorflow": "==2.19.0"})
"""It concerns the release on every GPU, so that no GPU is excluded for it."""
WITH_XLA = bad("odd", {"tensorflow": "==2.19.0", "numpy": "<2"}, job="XLA")
XLA = bad("slow", {"tensorflow": "==2.19.0"}, job="XLA")
WHOLE = release(
    "2.19.0",
    same_as="2.18.0",
    tf_keras="2.19.0",
    note="read it",
    kernel_gen=PTX_8_5.model_dump(),
    nccl=Nccl(linkage="dynamic", version=">=2.27", basis="read"),
    verified="2026-01-02, all parts",
    source=("wheel", "a page"),
)
UNSTATED = release(
    "2.19.0", cuda="14.0", cudnn=None, requires=(), and_cuda=None, cubins=(60,), ptx=(), runpath=(),
    python="==3.11.*", nccl=Nccl(linkage="static", version=None, basis="read"),
)  # fmt: skip
MODELS = GpuKind(capability="8.0", architecture="Ampere", models=("X1", "X2", "X3", "X4"), source=SOURCE)

ANSWERS = {
    "installed": partial(view, installed="2.18.1"),
    "newest-installed": partial(view, small_matrix(OLD, NEW), installed="2.19.0"),  # nothing is left out
    "old-matrix": partial(view, today=dt.date(2026, 4, 2)),
    "jax": partial(view, small_matrix(jax=(release("0.7.0", distribution="jax", extra="cuda12"),)).of("jax")),
    "all": partial(view, small_matrix(OLD, PATCH, LATE), detailed=True),
    # Releases older than the best do not matter.
    "same-reason": partial(view, small_matrix(BEFORE[0], OLD, BEFORE[1], LATE)),
    "many-reasons": partial(view, small_matrix(OLD, *MANY)),
    "prerelease": partial(view, small_matrix(release("2.20.0rc0"))),
    "cpu": partial(view, machine=CPU),
    "platform-without-gpus": partial(view, machine=replace(MACHINE, platform="macos")),
    "none-runs": partial(view, machine=Machine(driver="470.1", gpus=(A100,), python="3.9")),
    "undecided": partial(view, machine=Machine(driver="560.28", gpus=(A100,))),
    "system-cuda": partial(view, machine=replace(MACHINE, cuda="11.8")),
    "old-driver": partial(view, small_matrix(release("2.18.0", ptx=("80", "90"), cubins=(80, 90)), NEW), OLD_DRIVER),
    "old-driver-for-all": partial(view, small_matrix(NEW), OLD_DRIVER),  # the reason is printed above
    "note": partial(view, small_matrix(OLD, NEW, LATE, known_bad=(XLA,)), installed="2.18.0"),
    "cut-table": partial(view, WITH_EARLY, facts=long_facts(20)),  # begins with the release to install
    "whole-table": partial(view, WITH_EARLY, facts=long_facts(4)),
    "unstated": partial(
        view, small_matrix(NEW, UNSTATED.model_copy(update={"version": "2.20.0"}), WHOLE), CPU, detailed=True
    ),
    "keras": partial(view, small_matrix(OLD, NEW, **MEASURED)),
    "keras-many": partial(view, small_matrix(OLD, NEW, **DEFECTS)),
    "keras-many-all": partial(view, small_matrix(OLD, NEW, **DEFECTS), detailed=True),
}
"""What is shown without ``--tensorflow``."""
NEEDS = {
    "needs": partial(named_release, "2.19"),
    "needs-all": partial(named_release, "2.18.0", detailed=True),
    "needs-keras": partial(named_release, "2.19", small_matrix(OLD, NEW, **MEASURED)),
    "needs-everything": partial(
        named_release,
        "2.19",
        small_matrix(OLD, WHOLE, known_bad=(WITH_XLA, CRASHES, *OTHERS), sources={"wheel": "the wheel itself"}),
        detailed=True,
    ),
    "needs-short": partial(named_release, "2.19", small_matrix(OLD, WHOLE, known_bad=(WITH_XLA, CRASHES, *OTHERS))),
    "needs-unstated": partial(named_release, "2.19", small_matrix(UNSTATED)),
    "needs-unstated-all": partial(named_release, "2.19", small_matrix(UNSTATED), detailed=True),
    "needs-first-models": partial(named_release, "2.19", small_matrix(NEW, gpus=(MODELS,)), detailed=True),
    "needs-excluded": partial(named_release, "2.19", small_matrix(OLD, NEW, known_bad=(NO_HOPPER,)), detailed=True),
    "needs-excluded-elsewhere": partial(
        named_release, "2.18.0", small_matrix(OLD, NEW, known_bad=(NO_HOPPER,)), detailed=True
    ),
    "verdict-no": partial(named_release, "2.20.0", small_matrix(OLD, LATE), MACHINE),
    "verdict-runs": partial(named_release, "2.19", small_matrix(OLD, NEW, known_bad=(XLA,)), MACHINE),
    "verdict-unknown": partial(named_release, "2.18.0", small_matrix(OLD, LATE), Machine(gpus=(A100,))),
    "verdict-old-driver": partial(named_release, "2.19", machine=OLD_DRIVER),
    "verdict-many-reasons": partial(named_release, "2.19", machine=replace(MACHINE, gpus=OTHER_CUDA)),
}
"""What ``--tensorflow`` shows."""
PAGES: Mapping[str, Callable[[], View]] = {**ANSWERS, **NEEDS}


@pytest.mark.parametrize("name", PAGES)
def test_page_on_the_terminal(name: str, screen: SnapshotAssertion) -> None:
    lines = terminal(PAGES[name]())
    assert len(lines) <= SCREEN or name == "cut-table"  # its facts leave no room
    assert "\n".join(lines) == screen


@pytest.mark.parametrize("name", ["note", "undecided", "none-runs", "keras", "needs", "needs-keras", "verdict-runs"])
def test_page_in_markdown(name: str, screen: SnapshotAssertion) -> None:
    assert render(PAGES[name](), "markdown") == screen


def test_json_has_the_machine_and_every_verdict() -> None:
    text = render(PAGES["note"](), "json")
    document = json.loads(text)
    assert (document["schema"], text.splitlines()[1][:3]) == ("kdoctor/matrix-answer/v1", '  "')
    assert document["matrix"] == {"name": "the matrix of a test", "updated": "2026-01-01", "platform": "linux-x86_64"}
    machine = document["machine"]
    assert (machine["driver"], machine["tensorflow_installed"], machine["unknown_gpus"]) == ("560.28", "2.18.0", [])
    assert machine["facts"][0] == {"label": "Driver", "value": "560.28", "origin": "--driver"}
    assert (document["best"]["version"], document["best"]["install"]["command"]) == ("2.19.0", INSTALL)
    found = [(row["version"], row["outcome"], len(row["against"])) for row in document["releases"]]
    assert found == [("2.20.0", "does-not-run", 1), ("2.19.0", "runs", 0), ("2.18.0", "runs", 0)]
    assert document["releases"][1]["oldest_driver"] == "525.60.13"
    assert "needs" not in document


def test_json_of_a_release_has_what_it_needs() -> None:
    document = json.loads(render(PAGES["needs"](), "json"))
    needs = document["needs"]
    assert (document["machine"], document["best"], document["releases"]) == (None, None, [])
    assert (needs["version"], needs["oldest_driver"], needs["ptx_driver"]) == ("2.19.0", "525.60.13", "555.42.02")
    assert (needs["capabilities_by_machine_code"], needs["capabilities_by_ptx"]) == (["8.0"], ["9.0"])
    assert needs["libraries"] == {"cudart": "libcudart.so.12"}
    assert needs["install"] == {"command": INSTALL, "commands": [INSTALL]}


def test_json_has_the_defects_of_keras() -> None:
    (only,) = json.loads(render(PAGES["keras"](), "json"))["keras"]
    assert (only["package"], only["release"], only["features"]) == ("keras", "3.10.0", 4)
    assert sorted(item["feature"] for item in only["defects"]) == ["four", "three", "two"]


def test_all_reasons_of_a_named_release_are_shown_on_demand() -> None:
    shown = PAGES["verdict-many-reasons"]()
    lines = terminal(replace(shown, detailed=True))
    (verdict,) = shown.verdicts
    assert sum(line.startswith("  - ") for line in lines) == len(verdict.against)


def test_terminal_gets_only_what_it_can_show() -> None:
    odd = view(facts=(Fact("GPUs", "caf\u00e9 \x1b[31mred", "--gpu"),))
    assert "caf\u00e9" in terminal(odd, Canvas(unicode=False))[0]
    for form in FORMATS:
        assert "\x1b" not in render(odd, form)


@pytest.mark.parametrize("number", range(4, 24))
def test_short_answer_uses_the_screen_but_not_more(number: int) -> None:
    """The facts, the command and two releases are always shown, and the table before the reasons from four lines on."""
    lines = terminal(view(small_matrix(*SIX, LATE, **MEASURED), facts=long_facts(number)))
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


@pytest.mark.parametrize("number", range(1, 17))
def test_known_problems_fill_the_screen_of_a_release(number: int) -> None:
    """The more facts are above, the fewer problems are listed; below one line, only the last line names them."""
    shown = named_release("2.19", problems(30), facts=long_facts(number))
    lines = terminal(shown)
    listed = sum(line.startswith("  - odd") for line in lines)
    fixed = number + 2 + 1 + len(list(main_rows(shown.needs or requirements(MATRIX, "2.19")))) + 2
    wrapped = sum(line.startswith(" " * 11) for line in lines)  # second lines of the requirements, and unlabelled ones
    room = SCREEN - (fixed - 1 + wrapped) - 5
    assert listed == max(room, 0)
    assert lines[-1].startswith("Packages" if room > 0 else "Known problems, packages")
    assert ("Known problems (kdoctor explain ID)" in lines) == (room > 0)
    assert (f"  and {30 - listed} more" in lines) == (room > 0)


@cases((None, "numpy<2; python_version < '3.12', numpy>=2"), ("3.11.7", "numpy<2, numpy>=2"), ("3.12", "numpy>=2"))
def test_packages_are_those_of_the_python(python: str | None, shown: str) -> None:
    wanted = release("2.19.0", requires=("numpy<2; python_version < '3.12'", "numpy>=2"))
    assert dict(all_rows(requirements(small_matrix(wanted), "2.19"), python))["Packages"] == shown


@cases(("2.19.0", False), ("2.18.7", False), ("?", False), ("2.19.1", True))
def test_installed_release_that_is_newer_than_the_matrix_is_not_replaced(installed: str, *, shown: bool) -> None:
    lines = terminal(view(installed=installed))
    assert (f"    kdoctor matrix add --wheel tensorflow=={installed} > own.yaml" in lines) is shown
    assert (f"    {INSTALL}" in lines) is not shown
