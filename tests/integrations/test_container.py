"""The Containerfile: its commands in a chroot, and the image as buildah makes it, on a base of Debian's packages."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.chroot_image import PROGRAMS, Stage, build, debian
from helpers.command import kdoctor
from helpers.integrations import ROOT, needs

pytestmark = [
    pytest.mark.services,
    *needs(*PROGRAMS),
    pytest.mark.skipif(os.geteuid() != 0, reason="chroot needs root"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the base, and with the build's context: a wheel of this checkout."""
    folder = tmp_path_factory.mktemp("image")
    context = folder / "context"
    context.mkdir()
    shutil.copy(ROOT / "constraints.txt", context)
    wheel = ("-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(context / "dist"), str(ROOT))
    subprocess.run((sys.executable, *wheel), check=True)
    debian(folder)
    yield folder
    subprocess.run(("rm", "--recursive", "--one-file-system", str(folder)), check=False)


@pytest.fixture(scope="module")
def image(folder: Path) -> Stage:
    """The last stage."""
    return build(ROOT / "Containerfile", folder / "context", folder / "base")


@pytest.mark.skipif(shutil.which("buildah") is None, reason="not installed: buildah")
def test_engine_builds_the_image(folder: Path) -> None:
    """Without namespaces: buildah isolates by chroot. The base is not that of the release, which is on a registry."""
    stores = ("--root", f"{folder}/store", "--runroot", f"{folder}/run", "--storage-driver", "vfs")

    def buildah(command: str, *arguments: str | Path) -> str:
        words = ["buildah", *stores, command, *map(str, arguments)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
        return done.stdout

    buildah("from", "--name", "base", "scratch")
    buildah("add", "base", folder / "base", "/")
    buildah("commit", "--quiet", "--rm", "base", "base")
    built = ("--isolation", "chroot", "--build-arg", "BASE=localhost/base", "--file", ROOT / "Containerfile")
    buildah("bud", "--quiet", *built, "--tag", "kdoctor", folder / "context")
    settings = json.loads(buildah("inspect", "--type", "image", "localhost/kdoctor"))["OCIv1"]["config"]
    assert (settings["User"], settings["Entrypoint"], settings["Cmd"]) == ("10001", ["kdoctor"], ["--help"])
    buildah("from", "--name", "job", "localhost/kdoctor")
    run = ("--isolation", "chroot", "job", "--")
    assert buildah("run", *run, "id", "-u").strip() == "10001"
    asked = ("matrix", "--tensorflow", "2.19")
    assert buildah("run", *run, "kdoctor", *asked) == kdoctor(*asked).stdout


def test_image_runs_as_a_user_without_a_login(image: Stage) -> None:
    assert int(image.user) > 0
    assert image.run(["id", "-u"]).stdout.strip() == image.user
    done = image.run([*image.entrypoint, "--help"])
    assert done.returncode == 0, done.stderr
    assert image.run(["/opt/kdoctor/bin/python", "-c", "import ClusterShell"]).returncode == 0
    assert image.run(["/opt/kdoctor/bin/python", "-c", "import tensorflow"]).returncode != 0


@cases(["matrix", "--tensorflow", "2.19"], ["checklist", "show", "fleet"], ["explain", "gpu.free"])
def test_commands_that_read_files_print_what_they_print_here(image: Stage, arguments: list[str]) -> None:
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
