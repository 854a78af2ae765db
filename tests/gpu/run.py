"""Run the tests that need a real NVIDIA GPU, offline and from the source tree: ``make test-gpu``.

It needs the standard library only. Wheels of packages that the interpreter lacks come from a folder, and are installed
without a network into ``build/gpu-site``. That folder also gets the metadata of keras-doctor, which names its plugins.
"""

import argparse
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import tomllib

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
SITE = BUILD / "gpu-site"
SOURCES = [ROOT / name for name in ("doctor", "checks", "checklists")]
LIMIT_S = 475.0
"""Seconds after which the tests are ended."""
NEEDED = ("jinja2", "packaging", "psutil", "pydantic", "pynvml", "pytest", "rich", "typer", "yaml")
"""Modules without which the tests cannot start. Keras and JAX are needed by the trainings, which are skipped."""


def main() -> int:
    """Prepare the folder, and run the tests in a process that has it on its path."""
    parser = argparse.ArgumentParser(description="Run the tests that need a real NVIDIA GPU.")
    parser.add_argument("--wheels", type=Path, help="folder with wheels of what this interpreter lacks")
    parser.add_argument("--output", type=Path, default=BUILD / "measured-gpu.json", help="where to write the record")
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds after which the tests are ended")
    options, pytest_options = parser.parse_known_args()
    shutil.rmtree(SITE, ignore_errors=True)
    SITE.mkdir(parents=True)
    failure = _install(options.wheels) if options.wheels else None
    paths = [str(SITE), *map(str, SOURCES), *filter(None, [os.environ.get("PYTHONPATH")])]
    sys.path[:0] = paths
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if failure or missing:
        print(failure or f"{sys.executable} lacks {', '.join(missing)}: give their wheels with WHEELS=FOLDER")  # noqa: T201
        return 2
    _describe_keras_doctor()
    environ = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        # Plugins of other projects in this interpreter do not belong to these tests.
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "KDOCTOR_GPU_RECORD": str(options.output.absolute()),
        "KDOCTOR_GPU_BUDGET_S": str(options.limit * 0.95),
    }
    command = [sys.executable, "-m", "pytest", "tests/gpu", "-m", "gpu", "--confcutdir", "tests/gpu"]
    command += ["-p", "no:cacheprovider", "--durations", "5", *pytest_options]
    try:
        return subprocess.run(command, check=False, cwd=ROOT, env=environ, timeout=options.limit).returncode
    except subprocess.TimeoutExpired:
        print(f"the tests did not end within {options.limit:g} s; {options.output} has what was seen before")  # noqa: T201
        return 1


def _install(wheels: Path) -> str | None:
    """Install the wheels without an index and without dependencies; returns why that failed."""
    files = sorted(wheels.glob("*.whl"))
    if not files:
        return f"{wheels} contains no wheel (*.whl)"
    options = ["--quiet", "--no-index", "--no-deps", "--no-compile", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(SITE), *map(str, files)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return f"the wheels cannot be installed: {done.stderr.strip()}" if done.returncode else None


def _describe_keras_doctor() -> None:
    """Write the metadata of keras-doctor, unless it is installed: its entry points name the built-in checks."""
    try:
        importlib.metadata.distribution("keras-doctor")
    except importlib.metadata.PackageNotFoundError:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        folder = SITE / "keras_doctor-0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: keras-doctor\nVersion: 0\n", encoding="utf-8")
        lines = [
            line
            for group, entries in project["entry-points"].items()
            for line in (f"[{group}]", *(f"{name} = {value}" for name, value in entries.items()))
        ]
        (folder / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
