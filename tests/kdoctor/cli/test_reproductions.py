"""The scripts of ``kdoctor explain --reproduce``, run as a user runs them."""

import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from helpers import forked_scripts
from helpers.command import captured, environ, kdoctor
from helpers.tiers import asked_for, tiered
from kdoctor.failures.known import load_failures, load_reproductions

MOST_LINES = 40
DEADLINE_S = 300
DEFECTIVE, RIGHT = 3, 0
KERAS_3 = dict.fromkeys(load_reproductions(), DEFECTIVE) | {"mirrored-fit": RIGHT, "nadam-custom-loop": RIGHT}
"""Exit status with Keras 3.15.1. Only older releases fail the plainest training, and Nadam fails in Keras 2 only."""
KERAS_2 = dict.fromkeys(load_reproductions(), RIGHT) | dict.fromkeys(
    ("absent-worker", "hierarchical-copy", "masked-loss", "model-outside-scope", "nadam-custom-loop", "no-such-device"),
    DEFECTIVE,
)
"""Exit status with tf_keras 2.21.0: these belong to TensorFlow or to both releases of Keras, and Nadam to Keras 2."""
NEEDED = {"jax": "jax", "torch": "torch"}
"""The start of a name to the module that the script needs instead of TensorFlow."""


def module(name: str) -> str:
    return NEEDED.get(name.partition("-")[0], "tensorflow")


def test_script_is_printed() -> None:
    done = kdoctor("explain", "--reproduce", "jax-evaluate")
    assert done.returncode == 0
    assert done.stdout == load_reproductions()["jax-evaluate"]


@pytest.mark.parametrize("name", load_reproductions())
def test_script_is_short(name: str) -> None:
    assert len(load_reproductions()[name].splitlines()) <= MOST_LINES


@pytest.mark.parametrize("name", load_reproductions())
def test_script_names_its_exit_status_and_the_upstream_issue(name: str) -> None:
    text = load_reproductions()[name].split('"""')[1]
    assert "Exit status: 3 if" in text
    assert re.search(r"https://github\.com/\S+|[Nn]o (upstream )?issue( is)? known", text)


def test_unknown_names_and_no_name_are_usage_errors() -> None:
    unknown = kdoctor("explain", "--reproduce", "cliping")
    assert (unknown.returncode, "'clipping'" in unknown.stderr) == (2, True)
    assert kdoctor("explain", "--reproduce", "clipping", "smoke.clipping").returncode == 2
    assert kdoctor("explain").returncode == 2


def test_known_failures_name_existing_scripts_and_each_script_is_named() -> None:
    named = {name for failure in load_failures().failure_modes for name in failure.reproduce}
    assert named == set(load_reproductions())


def _status(tmp_path: Path, name: str, **env: str) -> int:
    script = tmp_path / "reproduction.py"
    script.write_text(load_reproductions()[name], encoding="utf-8")
    done = captured([sys.executable, str(script)], env=environ(**env), timeout=DEADLINE_S)
    assert done.stdout, done.stderr
    return done.returncode


OWN_PROCESS = [
    name for name, text in load_reproductions().items() if re.search(r"^import .*\bos\b", text, re.MULTILINE)
]
"""Scripts that set variables before an import, or start themselves again."""
FORKED = [name for name in load_reproductions() if name not in OWN_PROCESS]
QUICK = {"mirrored-fit", "moving-statistics"}


@pytest.mark.smoke_full
@pytest.mark.parametrize("name", OWN_PROCESS)
def test_exit_status_shows_the_defect(tmp_path: Path, name: str) -> None:
    if not find_spec(module(name)):
        pytest.skip(f"{module(name)} is not installed")
    assert _status(tmp_path, name, TF_USE_LEGACY_KERAS="0") == KERAS_3[name]


@pytest.fixture(scope="module")
def ended(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str]]:
    """The exit status and the output of each other script, after one import of TensorFlow."""
    folder = tmp_path_factory.mktemp("scripts")
    names = asked_for(request, "forked")
    for name in names:
        (folder / f"{name}.py").write_text(load_reproductions()[name], encoding="utf-8")
    paths = [str(folder / f"{name}.py") for name in names]
    command = [sys.executable, forked_scripts.__file__, *paths]
    environment = environ(TF_USE_LEGACY_KERAS="0")
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    return {Path(path).stem: end for path, end in json.loads(done.stdout).items()}


@pytest.mark.tensorflow
@pytest.mark.parametrize("forked", tiered(FORKED, QUICK))
def test_exit_status_shows_the_defect_after_a_shared_import(ended: dict[str, tuple[int, str]], forked: str) -> None:
    status, output = ended[forked]
    assert output
    assert status == KERAS_3[forked], output


@pytest.mark.smoke_full
@pytest.mark.parametrize("name", [name for name in load_reproductions() if module(name) == "tensorflow"])
def test_exit_status_with_keras_2(tmp_path: Path, name: str) -> None:
    assert _status(tmp_path, name, TF_USE_LEGACY_KERAS="1") == KERAS_2[name]
