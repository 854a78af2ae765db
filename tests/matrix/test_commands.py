"""Every printed installation command resolves, for each Python and platform that it is printed for.

``make test-matrix`` runs these tests. pip reads the metadata of all wheels; nothing is installed. ``MATRIX_PYTHONS``
adds interpreters to those on PATH. pip's ``--python-version`` is not used: it judges some wheels by its own Python.
uv resolves for other platforms, and for versions of Python that are not installed.
"""

import itertools
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from helpers.real_environments import interpreter
from helpers.tiers import asked_for
from kdoctor.matrix.compatibility import best, compatible
from kdoctor.matrix.gpus import find_gpu
from kdoctor.matrix.load import load_matrix
from kdoctor.matrix.values import python_minors
from kdoctor.matrix.verdict import Machine

pytestmark = [pytest.mark.matrix, pytest.mark.skipif(sys.platform != "linux", reason="the wheels are for Linux")]

MATRIX = load_matrix(environ={})
MACHINES = (
    *(
        Machine(driver=driver, gpus=(find_gpu(MATRIX, gpu),))
        for driver, gpu in (("580.95.05", "A100"), ("580.95.05", "V100"), ("580.95.05", "B200"), ("535.161.08", "H100"))
    ),
    *(
        Machine(driver="580.95.05", gpus=(find_gpu(MATRIX, "A100"),), cuda=cuda, cudnn="9.12")
        for cuda in ("12.9", "13.0")
    ),
    Machine(gpus=()),
)
"""Drivers, GPUs and libraries of the system that lead to different extras and pins, and the CPU."""

PLATFORMS = {
    MATRIX.platform: "x86_64-manylinux_2_28",
    "linux-aarch64": "aarch64-manylinux_2_28",
    "windows": "windows",
    "macos": "macos",
}
"""uv's names of the platforms. WSL2 has the commands of Linux."""

AT_ONCE = 4
"""pip mostly waits for the package index."""

DEADLINE_S = 1800.0


class Command(NamedTuple):
    """Requirements that are printed for a platform and a Python."""

    platform: str
    python: str
    requirements: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join((self.platform, self.python, *self.requirements))


def commands() -> list[Command]:
    """All printed commands, without what is printed with a warning about pip."""
    found: dict[Command, None] = {}
    for matrix, platform, python in itertools.product(
        (MATRIX, MATRIX.of("jax")), PLATFORMS, python_minors(">=3.7,<3.16")
    ):
        for machine in MACHINES:
            verdicts = compatible(matrix, replace(machine, python=python, platform=platform))
            newest = best(verdicts)
            for verdict in verdicts if not machine.for_cpu else [newest] if newest else []:
                warned = any(reason.failure == "h5py_pin_python314" for reason in verdict.cautions)
                if verdict.outcome == "runs" and not warned:
                    found[Command(platform, python, verdict.requirements)] = None
    return list(found)


def with_current_pip(python: str, folder: Path) -> str | None:
    """An interpreter of that version with the newest pip for it, in a new environment."""
    found = interpreter(python)
    if found is None:
        return None
    subprocess.run([found, "-m", "venv", folder], check=True)
    executable = str(folder / "bin/python")
    subprocess.run([executable, "-m", "pip", "install", "--quiet", "--upgrade", "pip"], check=True)
    return executable


def with_pip(python: str, requirements: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    # With fast-deps, pip reads the metadata inside a remote wheel where the index does not serve it as a file.
    argv = [python, "-m", "pip", "install", "--dry-run", "--quiet", "--ignore-installed", "--use-feature=fast-deps"]
    return subprocess.run([*argv, *requirements], check=False, capture_output=True, text=True, timeout=DEADLINE_S)


def with_uv(uv: str, command: Command) -> subprocess.CompletedProcess[str]:
    platform = PLATFORMS[command.platform]
    if (command.platform, command.python) == ("macos", "3.7"):
        platform = "x86_64-apple-darwin"  # no TensorFlow for Apple silicon supports Python 3.7
    where = ["--python-version", command.python, "--python-platform", platform]
    argv = [uv, "pip", "compile", "--quiet", "--no-header", *where, "-"]
    wanted = "\n".join(command.requirements)
    return subprocess.run(argv, input=wanted, check=False, capture_output=True, text=True, timeout=DEADLINE_S)


@pytest.fixture(scope="module")
def ends(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[Command, Future[subprocess.CompletedProcess[str]]]]:
    """How the selected commands end, without those that nothing here can resolve."""
    selected: list[Command] = asked_for(request, "command")
    folder, uv = tmp_path_factory.mktemp("pip"), shutil.which("uv")
    here = {command.python for command in selected if command.platform == MATRIX.platform}
    pips = {python: with_current_pip(python, folder / python) for python in here}
    pool, started = ThreadPoolExecutor(AT_ONCE), {}
    for command in selected:
        pip = pips[command.python] if command.platform == MATRIX.platform else None
        if pip:
            started[command] = pool.submit(with_pip, pip, command.requirements)
        elif uv:
            started[command] = pool.submit(with_uv, uv, command)
    yield started
    pool.shutdown(cancel_futures=True)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make the commands only where the tests run: it takes seconds."""
    left_out = "not matrix" in metafunc.config.getoption("markexpr")
    metafunc.parametrize("command", [] if left_out else commands(), ids=str)


def test_command_resolves(command: Command, ends: dict[Command, Future[subprocess.CompletedProcess[str]]]) -> None:
    if command not in ends:
        pytest.skip(f"Python {command.python} or uv was not found; MATRIX_PYTHONS can name an interpreter")
    end = ends[command].result()
    assert end.returncode == 0, end.stderr[-2000:]
