"""Real environments, one for each measured release of Keras: created once, with uv or with venv and pip."""

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Package = Literal["keras", "tf_keras"]

PYTHON = "3.11"
"""Has wheels of every release here."""

BUILD_S = 1800.0
"""Deadline of one installation."""

_READ = """\
import json, platform
from importlib.metadata import PackageNotFoundError, version
found = {"python": platform.python_version()}
for name in ("tensorflow", "tf_nightly", "keras", "keras_nightly", "tf_keras", "numpy", "jax"):
    try:
        found[name] = version(name)
    except PackageNotFoundError:
        pass
print(json.dumps(found))
"""


class BuildError(Exception):
    """An environment cannot be created."""


@dataclass(frozen=True, kw_only=True)
class Environment:
    """The packages of an environment."""

    keras: str
    """A release, or ``nightly``."""
    tensorflow: str
    """A release that accepts this Keras, or ``nightly``."""
    tf_keras: str | None = None
    """The tf_keras to measure as well: the last one for this TensorFlow."""
    jax: str | None = None
    """A JAX that this Keras supports, for ``make test-oracle``."""

    @property
    def name(self) -> str:
        """The name of its folder."""
        return f"keras-{self.keras}"

    @property
    def packages(self) -> tuple[Package, ...]:
        """What is measured in it."""
        return ("keras", "tf_keras") if self.tf_keras else ("keras",)

    @property
    def requirements(self) -> list[str]:
        """What to install."""
        nightly = self.keras == "nightly"
        wanted = ["keras-nightly", "tf-nightly"] if nightly else [f"keras=={self.keras}"]
        wanted += [] if nightly else [f"tensorflow=={self.tensorflow}"]
        return [*wanted, f"tf-keras=={self.tf_keras}"] if self.tf_keras else wanted


ENVIRONMENTS = (
    Environment(keras="3.2.1", tensorflow="2.16.2", tf_keras="2.16.0"),
    Environment(keras="3.4.1", tensorflow="2.17.1", tf_keras="2.17.0"),
    Environment(keras="3.6.0", tensorflow="2.18.1", tf_keras="2.18.0"),
    Environment(keras="3.8.0", tensorflow="2.19.1", tf_keras="2.19.0"),
    Environment(keras="3.9.2", tensorflow="2.19.1"),
    Environment(keras="3.10.0", tensorflow="2.20.0", tf_keras="2.20.1"),
    Environment(keras="3.12.4", tensorflow="2.21.0", jax="0.6.2"),
    Environment(keras="3.14.1", tensorflow="2.21.0"),
    Environment(keras="3.15.1", tensorflow="2.21.0", tf_keras="2.21.0", jax="0.10.2"),
    Environment(keras="nightly", tensorflow="nightly"),
)
"""Oldest first. TensorFlow is one that accepts the Keras of its row, as pip would resolve it."""


def build(environment: Environment, folder: Path) -> Path:
    """The interpreter of the environment. A finished one is reused.

    Raises:
        BuildError: it cannot be created.
    """
    place = folder / environment.name
    executable, finished = place / "bin/python", place / "finished"
    if finished.exists() and finished.read_text(encoding="utf-8").split("\n") == environment.requirements:
        return executable
    pre = environment.keras == "nightly"
    uv = shutil.which("uv")
    if uv:
        steps = [
            [uv, "venv", "--quiet", "--clear", "--python", PYTHON, str(place)],
            [uv, "pip", "install", "--quiet", "--python", str(executable), *environment.requirements],
        ]
        steps[1] += ["--prerelease", "allow"] if pre else []
    else:
        pip = [str(executable), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        steps = [[f"python{PYTHON}", "-m", "venv", "--clear", str(place)], [*pip, *environment.requirements]]
        steps[1] += ["--pre"] if pre else []
    for step in steps:
        try:
            done = subprocess.run(step, check=False, capture_output=True, text=True, timeout=BUILD_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise BuildError(str(error)) from error
        if done.returncode:
            raise BuildError(f"{' '.join(step)}: {done.stderr.strip()[-500:]}")
    finished.write_text("\n".join(environment.requirements), encoding="utf-8")
    return executable


def installed(python: Path) -> dict[str, str]:
    """The exact versions, by the name of the imported package; ``tensorflow`` and ``keras`` may be nightlies."""
    done = subprocess.run([python, "-c", _READ], check=True, capture_output=True, text=True, timeout=60)
    found: dict[str, str] = json.loads(done.stdout)
    for name, nightly in (("tensorflow", "tf_nightly"), ("keras", "keras_nightly")):
        if nightly in found:
            found[name] = found.pop(nightly)
    return found
