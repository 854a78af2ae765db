"""The commands of the Containerfile, run in a chroot; the image is built by the release workflow only."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.chroot_image import PROGRAMS, Stage, build, debian
from helpers.command import kdoctor
from helpers.integrations import ROOT, needs

pytestmark = [
    pytest.mark.services,
    *needs(*PROGRAMS),
    pytest.mark.skipif(os.geteuid() != 0, reason="chroot needs root"),
]


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """The last stage, with a wheel of this checkout."""
    folder = tmp_path_factory.mktemp("image")
    context = folder / "context"
    context.mkdir()
    shutil.copy(ROOT / "constraints.txt", context)
    wheel = (
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        str(context / "dist"),
        str(ROOT),
    )
    subprocess.run(wheel, check=True)
    yield build(ROOT / "Containerfile", context, debian(folder))
    subprocess.run(("rm", "--recursive", "--one-file-system", str(folder)), check=False)


def test_image_runs_as_a_user_without_a_login(image: Stage) -> None:
    assert int(image.user) > 0
    assert image.run(["id", "-u"]).stdout.strip() == image.user
    done = image.run([*image.entrypoint, "--help"])
    assert done.returncode == 0, done.stderr
    assert image.run(["/opt/kdoctor/bin/python", "-c", "import ClusterShell"]).returncode == 0
    assert image.run(["/opt/kdoctor/bin/python", "-c", "import tensorflow"]).returncode != 0


@pytest.mark.parametrize(
    "arguments", [["matrix", "--tensorflow", "2.19"], ["checklist", "show", "fleet"], ["explain", "gpu.free"]]
)
def test_commands_that_read_files_print_what_they_print_here(arguments: list[str], image: Stage) -> None:
    inside, here = image.run([*image.entrypoint, *arguments]), kdoctor(*arguments)
    assert (inside.returncode, inside.stdout) == (0, here.stdout), inside.stderr


def test_mounted_environment_of_a_job_is_checked_and_trains(image: Stage) -> None:
    for place in Path(sys.base_prefix).parents:  # the folders above must not be those of root alone
        Path(f"{image.root}{place}").mkdir(parents=True, exist_ok=True)
        Path(f"{image.root}{place}").chmod(0o755)
    done = image.run(
        [*image.entrypoint, "check", "--python", sys.executable, "--checklist", "cpu-smoke", "-f", "json"],
        mounts=[sys.base_prefix, sys.prefix],
    )
    document = json.loads(done.stdout)
    assert document["verdict"] == "pass", done.stderr
    assert document["facts"]["keras"]["version"]
    results = {result["id"]: result["status"] for result in document["results"]}
    assert results["smoke.baseline"] == "pass"
