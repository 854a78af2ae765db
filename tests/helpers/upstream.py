"""Runs the tests that Keras' and tf_keras' wheels ship, in the environments of ``make truth``."""

import json
import os
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from pathlib import Path

SUITES = {
    "backend/tensorflow/distribute_test.py": "tensorflow",
    "backend/tensorflow/optimizer_distribute_test.py": "tensorflow",
    "backend/jax/distribution_lib_test.py": "jax",
    "distribution/distribution_lib_test.py": "jax",
}
"""Files below ``keras/src``, and the backend that they test."""

CORRECTNESS = "distribute/keras_correctness_test_base.py"
"""The harness below ``tf_keras/src``."""

_PROGRAM = Path(__file__).parents[1] / "oracle/correctness.py"
_DEVICES = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_NUM_CPU_DEVICES": "8"}


@dataclass
class Upstream:
    """The result of one of their files."""

    source: str
    """``wheel``, ``sdist`` or why there is none."""
    passed: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


def run_suite(python: Path, release: str, suite: str, folder: Path) -> Upstream:
    """Run a file of Keras' tests in an environment.

    Args:
        python: the environment's interpreter, with pytest.
        release: of Keras, to get the file from the sdist if the wheel lacks it.
        suite: a key of ``SUITES``.
        folder: for the sdist and the result.
    """
    packages = Path(_ask(python, "import sysconfig; print(sysconfig.get_path('purelib'))"))
    file, source = packages / "keras/src" / suite, "wheel"
    if not file.exists():
        found = _from_sdist(release, suite, folder)
        if found is None:
            return Upstream(source="neither in the wheel nor in an sdist")
        file, source = found, "sdist"
    report = folder / "report.xml"
    report.unlink(missing_ok=True)
    environ = {**os.environ, "KERAS_BACKEND": SUITES[suite], "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3"}
    environ |= _DEVICES if SUITES[suite] == "jax" else {}
    options = ["-q", "-p", "no:cacheprovider", "-W", "ignore", f"--junitxml={report}", f"--rootdir={folder}"]
    command = [str(python), "-m", "pytest", *options, str(file)]
    subprocess.run(command, check=False, cwd=folder, env=environ, capture_output=True, timeout=900)
    result = Upstream(source=source)
    for test in ET.parse(report).getroot().iter("testcase"):  # noqa: S314 - written by the pytest that was started
        kinds = {child.tag for child in test}
        names = (
            result.failed if kinds & {"failure", "error"} else result.skipped if "skipped" in kinds else result.passed
        )
        names.append(test.get("name", ""))
    return result


def run_correctness(python: Path, package: str, folder: Path) -> Upstream:
    """Run tf_keras' correctness test with a model of a package."""
    environ = {**os.environ, "KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "3"}
    environ |= {"TF_USE_LEGACY_KERAS": "1"} if package == "tf_keras" else {}
    command = [str(python), str(_PROGRAM), package]
    done = subprocess.run(command, check=False, cwd=folder, env=environ, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return Upstream(
        source="wheel",
        passed=[name for name, problem in found.items() if not problem],
        failed=[name for name, problem in found.items() if problem],
    )


def _from_sdist(release: str, suite: str, folder: Path) -> Path | None:
    """The file from the release's sdist; None if that cannot be downloaded or lacks it."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
    name = "keras-nightly" if ".dev" in release else "keras"
    subprocess.run([*pip, f"{name}=={release}"], check=False, cwd=folder, capture_output=True, timeout=300)
    for archive in folder.glob(f"keras*{release}*.tar.gz"):
        with tarfile.open(archive) as members:
            for member in members:
                if member.isfile() and member.name.endswith(f"keras/src/{suite}"):
                    target = folder / suite.replace("/", "_")
                    content = members.extractfile(member)
                    assert content
                    target.write_bytes(content.read())
                    return target
    return None


def _ask(python: Path, code: str) -> str:
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
