"""Distributions: reproducible, complete, and installable with every extra."""

import gzip
import io
import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest
import yaml

from helpers.command import captured
from helpers.release import load

ROOT = Path(__file__).parents[2]
RELEASE = ROOT / ".venv-release" / "bin"
UV = str(RELEASE / "uv")
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
LIGHT = ("", "fleet", "kubernetes", "mcp")
"""Extras that are installed. The others are resolved, which reads only metadata."""
dist = load("dist")
tomllib: Any = resolve_name("tomllib" if sys.version_info >= (3, 11) else "tomli")


def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return found


def archive(*members: tuple[str, int, int]) -> bytes:
    """A tar archive with these names, modes and times."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w:gz") as made:
        for name, mode, time in members:
            member = tarfile.TarInfo(name)
            member.mode, member.mtime, member.size, member.uname = mode, time, 4, "someone"
            made.addfile(member, io.BytesIO(b"text"))
    return plain.getvalue()


def test_archives_of_two_machines_become_equal() -> None:
    first = dist.normalize(archive(("a/x", 0o664, 5), ("a/run", 0o775, 6)), 1000)
    second = dist.normalize(archive(("a/run", 0o755, 7), ("a/x", 0o600, 8)), 1000)
    assert first == second
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(first))) as read:
        assert [(one.name, one.mode, one.mtime, one.uname) for one in read] == [
            ("a/run", 0o755, 1000, ""),
            ("a/x", 0o644, 1000, ""),
        ]


def test_conda_recipe_has_the_dependencies_of_the_package() -> None:
    text = (ROOT / ".github/release/conda/meta.yaml").read_text(encoding="utf-8")
    version = re.search(r'set version = "([^"]+)"', text)
    assert version is not None
    source = (ROOT / "doctor/kdoctor/version.py").read_text(encoding="utf-8")
    assert version[1] == load("notes").version_of(source)
    body = re.sub(r"\{\{ ?(\w+)[^}]*\}\}", r"\1", re.sub(r"^\{%.*%\}$", "", text, flags=re.MULTILINE))
    recipe = yaml.safe_load(body)
    ours = {re.split(r"[ ;]", str(one))[0].replace(">=", " >=") for one in project()["dependencies"]}
    assert {one for one in recipe["requirements"]["run"] if not one.startswith("python ")} == ours
    scripts = {f"{name} = {target}" for name, target in project()["scripts"].items()}
    assert set(recipe["build"]["entry_points"]) == scripts


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The distributions of the last commit, which were built twice."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([RELEASE / "python", ROOT / ".github/release/dist.py", "--twice", folder], check=True)
    return folder


@pytest.mark.dist
def test_distributions_are_reproducible_and_well_formed(built: Path) -> None:
    files = sorted(built.iterdir())
    assert [re.sub(r"-[\d.]+(?=[-.])", "", path.name, count=1) for path in files] == [
        "keras_doctor-py3-none-any.whl",
        "keras_doctor.tar.gz",
    ]
    subprocess.run([RELEASE / "twine", "check", "--strict", *files], check=True)
    subprocess.run([RELEASE / "check-wheel-contents", files[0]], check=True)


def interpreter(version: str) -> str | None:
    """An interpreter of this machine, also of pyenv."""
    found = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    if found:
        return str(found[-1])
    command = [UV, "python", "find", "--no-python-downloads", version]
    done = captured(command)
    return done.stdout.strip() or None if done.returncode == 0 else None


@pytest.mark.dist
@pytest.mark.parametrize("version", PYTHONS)
def test_wheel_runs_with_every_extra(built: Path, tmp_path: Path, version: str) -> None:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"needs Python {version}")
    (wheel,) = built.glob("*.whl")
    environ = {**os.environ, "KDOCTOR_NO_HISTORY": "1"}
    for extra in LIGHT:
        folder = tmp_path / (extra or "none")
        subprocess.run([UV, "venv", "--quiet", "--python", python, folder], check=True)
        named = f"{wheel}[{extra}]" if extra else str(wheel)
        subprocess.run([UV, "pip", "install", "--quiet", "--python", folder / "bin/python", named], check=True)
        for command in (["kdoctor", "--version"], ["keras-doctor", "list", "--format", "json"], ["kdoctor", "matrix"]):
            done = captured([folder / "bin" / command[0], *command[1:]], check=True, env=environ)
            assert done.stdout
        for sources in ("sdist",) if extra == "" else ():
            (archived,) = built.glob("*.tar.gz")
            again = tmp_path / sources
            subprocess.run([UV, "venv", "--quiet", "--python", python, again], check=True)
            subprocess.run([UV, "pip", "install", "--quiet", "--python", again / "bin/python", archived], check=True)
            subprocess.run([again / "bin/kdoctor", "--version"], check=True)
    extras = set(project()["optional-dependencies"]) - set(LIGHT)
    assert extras == {"tensorflow", "cuda", "jax", "torch", "ray"}
    failed = {extra for extra in extras if not resolves(f"{wheel}[{extra}]", python)}
    assert failed <= ({"tensorflow", "cuda"} if version == "3.14" else set())


def resolves(requirement: str, python: str) -> bool:
    command = [UV, "pip", "compile", "--quiet", "--python", python, "-"]
    return captured(command, input=requirement).returncode == 0


VALIDATE = """import pathlib, sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
text = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
sys.exit(JsonStrictValidator(SchemaVersion.from_version(sys.argv[2])).validate_str(text))
"""
"""Exits with the first error, or without one."""


@pytest.mark.dist
def test_software_bill_of_materials_names_the_dependencies(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    folder, bill = tmp_path / "environment", tmp_path / "sbom.json"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    subprocess.run([UV, "pip", "install", "--quiet", "--python", folder / "bin/python", wheel], check=True)
    command: list[str | Path] = [RELEASE / "cyclonedx-py", "environment", "--output-reproducible"]
    command += ["--pyproject", ROOT / "pyproject.toml", "--output-format", "JSON", "--output-file", bill]
    subprocess.run([*command, folder / "bin/python"], check=True)
    found = json.loads(bill.read_text(encoding="utf-8"))
    assert found["bomFormat"] == "CycloneDX"
    subprocess.run([RELEASE / "python", "-c", VALIDATE, bill, found["specVersion"]], check=True)
    bill.write_text(json.dumps({**found, "components": [{}]}), encoding="utf-8")
    refused = [RELEASE / "python", "-c", VALIDATE, bill, found["specVersion"]]
    assert subprocess.run(refused, check=False, capture_output=True).returncode == 1
    assert {"pydantic", "typer", "rich"} <= {component["name"].lower() for component in found["components"]}
