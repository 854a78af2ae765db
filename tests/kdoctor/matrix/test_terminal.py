"""Each short answer fits on one screen, and names what it leaves out."""

import itertools

import pytest

from helpers.cases import cases
from kdoctor.matrix.compatibility import compatible, judge
from kdoctor.matrix.gpus import find_gpu
from kdoctor.matrix.load import load_matrix
from kdoctor.matrix.model import VersionMatrix
from kdoctor.matrix.render import render
from kdoctor.matrix.requirements import requirements
from kdoctor.matrix.verdict import Machine
from kdoctor.matrix.view import Fact, View
from kdoctor.text.canvas import SCREEN

MATRIX = load_matrix(environ={})
FACTS = tuple(Fact(label, "a value of usual length", "--option") for label in ("Driver", "GPUs", "Python", "Platform"))
DRIVERS = ("470.256.02", "525.60.13", "535", "550.54.15", "580.95.05", None)


def rows(text: str) -> int:
    """Rows of a terminal with 80 columns."""
    return sum(max(1, -(-len(line) // 80)) for line in text.splitlines())


def answer(matrix: VersionMatrix, machine: Machine, *, detailed: bool = False) -> str:
    verdicts = compatible(matrix, machine)
    return render(View(matrix=matrix, machine=machine, facts=FACTS, verdicts=verdicts, detailed=detailed), "terminal")


GPUS = ("K80", "P100", "V100", "T4", "A100", "H100", "GH200", "B200", "B300", "RTX 5090")
MACHINES = list(
    itertools.product(DRIVERS, ("3.8", "3.11", "3.14"), (None, "linux-aarch64", "windows", "wsl2", "macos"))
)


@pytest.mark.parametrize("framework", ["tensorflow", "jax"])
@pytest.mark.parametrize("gpu", GPUS)
def test_answer_for_any_machine_fits_on_one_screen(framework: str, gpu: str) -> None:
    matrix = MATRIX.of(framework)
    for driver, python, platform in MACHINES[GPUS.index(gpu) % 7 :: 7]:  # each value with each GPU
        machine = Machine(driver=driver, gpus=(find_gpu(MATRIX, gpu),), python=python, platform=platform)
        assert rows(answer(matrix, machine)) <= SCREEN, machine


@pytest.mark.parametrize("release", [release.version for release in MATRIX.releases])
def test_requirements_of_any_release_fit_on_one_screen(release: str) -> None:
    view = View(matrix=MATRIX, machine=None, needs=requirements(MATRIX, release))
    assert rows(render(view, "terminal")) <= SCREEN


@cases(  # the driver and the package of NVIDIA's tables, and the newest release that runs
    ("2.21.0", "535.161.08", ("H100",), ("555.42.02", "cuda-compat-12-5", "2.16.2")),
    ("2.15.1", "570.124.06", ("RTX 5090",), ("blackwell_invalid_ptx", "2.21.0")),
    ("2.21.0", "535.161.08", ("GTX 980", "B200"), ()),
    ("2.21.0", "580.95.05", ("B200",), ()),
)
def test_named_release_has_its_verdict_and_the_way_out(
    release: str, driver: str, gpus: tuple[str, ...], named: tuple[str, ...]
) -> None:
    machine = Machine(driver=driver, gpus=tuple(find_gpu(MATRIX, gpu) for gpu in gpus), python="3.11")
    needs = requirements(MATRIX, release)
    verdicts = (judge(MATRIX, needs.release, machine),)
    shown = render(View(matrix=MATRIX, machine=machine, facts=FACTS, verdicts=verdicts, needs=needs), "terminal")
    assert rows(shown) <= SCREEN
    assert [text for text in named if text in shown] == list(named)
