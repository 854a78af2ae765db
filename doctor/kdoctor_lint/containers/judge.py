"""Judges Dockerfiles and compose files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from kdoctor.matrix.load import shipped_matrix
from kdoctor.matrix.model import Release, VersionMatrix
from kdoctor_lint.containers.compose import read_services
from kdoctor_lint.containers.dockerfile import Pin, Stage, read_stages
from kdoctor_lint.model import Finding, Rule, Spot
from kdoctor_lint.rules._containers import (
    CONTAINER_GPUS,
    CONTAINER_LOCKED_MEMORY,
    CONTAINER_SHARED_MEMORY,
    CONTAINER_VERSIONS,
)
from kdoctor_lint.rules.internal import SYNTAX_ERROR, UNREADABLE_FILE
from kdoctor_lint.script import read_bytes
from kdoctor_lint.unreadable import UnreadableError

_DOCKERFILE = re.compile(
    r"(?:.+\.)?(?:dockerfile|containerfile)(?:[.-](?!.*\b(?:py|pyi|ipynb|md|rst|dockerignore)$).+)?", re.IGNORECASE
)
_COMPOSE = re.compile(r"(?:docker-)?compose(?:[.-][\w.-]+)?\.ya?ml", re.IGNORECASE)
_PYTHON = re.compile(r"(?:^|/)python:(3\.[0-9]{1,3})(?!\d)|python(3\.[0-9]{1,3})(?!\d)")
_CUDA = re.compile(r"(?:^|/)cuda:([0-9]{1,3})\.([0-9]{1,3})(?!\d)[^/]*?(?:cudnn([0-9]*)(?:-|$)|$)")
_GPU_IMAGE = re.compile(r"(?:^|/)cuda:|(?:^|/)tensorflow:\S*gpu|^nvcr\.io/nvidia/(?:tensorflow|jax|pytorch):")
_SERIES = re.compile(r"(?:===?|~=(?=[0-9]+\.[0-9]+\.[0-9]))([0-9]{1,3})\.([0-9]{1,3})(?![0-9]).*")
"""A specifier that allows one minor release: ``==2.15.1``, ``==2.15.*``, ``~=2.15.0``."""
_LEAST_SHARED = 1024**3
_SEVERAL = "several replicas"
"""The jobs that this linter is for. Other rows of the matrix depend on more than the image."""
_TENSORFLOW = ("tensorflow", "tensorflow-cpu", "tf-nightly")

Hit = tuple[Rule, int, str]
"""A rule, a line, and what is wrong there."""


def is_container_file(path: str) -> bool:
    """Whether it is a Dockerfile or a compose file, by its name."""
    name = Path(path).name
    return bool(_DOCKERFILE.fullmatch(name) or _COMPOSE.fullmatch(name))


def lint_container(path: str, rules: Mapping[str, Rule]) -> list[Finding]:
    """The findings of one file."""
    try:
        text = read_bytes(path).decode("utf-8")
    except (UnreadableError, ValueError) as error:
        return [_finding(path, "", (UNREADABLE_FILE, 1, f"the file cannot be read: {error}"))]
    try:
        found = list(_compose(text) if _COMPOSE.fullmatch(Path(path).name) else _dockerfile(text))
    except (yaml.YAMLError, RecursionError) as error:
        line = error.problem_mark.line + 1 if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark else 1
        found = [(SYNTAX_ERROR, line, "the file is not YAML that can be read")]
    always = (SYNTAX_ERROR.id, UNREADABLE_FILE.id)
    return [_finding(path, text, hit) for hit in dict.fromkeys(found) if hit[0].id in rules or hit[0].id in always]


def _finding(path: str, text: str, hit: Hit) -> Finding:
    rule, line, message = hit
    lines = text.splitlines()
    source = lines[line - 1] if line <= len(lines) else ""
    start = len(source) - len(source.lstrip()) + 1
    spot = Spot(path=path, line=line, column=start, end_line=line, end_column=max(start, len(source) + 1))
    return Finding(rule=rule, spot=spot, message=message, source=source.strip())


def _compose(text: str) -> Iterator[Hit]:
    for service in read_services(text):
        for rule, line, message in _dockerfile(service.dockerfile):
            yield rule, line + service.dockerfile_line - 1, message
        if not service.has_gpus:
            if service.is_whole and _GPU_IMAGE.search(service.image):
                yield CONTAINER_GPUS, service.line, f"service `{service.name}` has a CUDA image and reserves no GPU"
            continue
        shared = service.shared_memory
        if shared is not None and shared < _LEAST_SHARED and not service.has_one_gpu:
            mebibytes = shared // 1024**2
            yield (
                CONTAINER_SHARED_MEMORY,
                service.line,
                f"service `{service.name}` has {mebibytes} MiB of shared memory",
            )
        if not service.locks_memory:
            yield CONTAINER_LOCKED_MEMORY, service.line, f"service `{service.name}` limits locked memory"


def _dockerfile(text: str) -> Iterator[Hit]:
    """The findings of a Dockerfile."""
    matrix = shipped_matrix()
    for stage in read_stages(text):
        python = _python(stage)
        pins = {pin.requirement.name.lower(): pin for pin in stage.pins if _applies(pin, python)}
        pin = next((pins[name] for name in _TENSORFLOW if name in pins), None)
        release = _release(matrix, pin) if pin else None
        if pin and release and not pin.is_in_image:
            yield from _fits(stage, pin, release)
        yield from _known_bad(matrix, stage, {name: pin for name, pin in pins.items() if _version(pin)})


def _version(pin: Pin) -> Version | None:
    """The version of an exact pin."""
    (only, *others) = [*pin.requirement.specifier] or [None]
    if only is None or others or only.operator != "==" or only.version.endswith(".*"):
        return None
    return Version(only.version)


def _applies(pin: Pin, python: str | None) -> bool:
    """Whether pip installs it on this Python. With a marker and a Python that is not known, that is not known."""
    marker = pin.requirement.marker
    linux = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix", "platform_machine": "x86_64"}
    if marker is None or python is None:
        return marker is None
    return marker.evaluate({**linux, "python_version": python, "python_full_version": f"{python}.0"})


def _release(matrix: VersionMatrix, pin: Pin) -> Release | None:
    found = _SERIES.fullmatch(str(pin.requirement.specifier))
    series = (int(found[1]), int(found[2])) if found else None
    return next((one for one in matrix.releases if Version(str(one.version)).release[:2] == series), None)


def _python(stage: Stage) -> str | None:
    found = _PYTHON.search(stage.image)
    return (found[1] or found[2]) if found else None


def _shown(pin: Pin) -> str:
    return str(pin.requirement.specifier).removeprefix("==")


def _fits(stage: Stage, pin: Pin, release: Release) -> Iterator[Hit]:
    python = _python(stage)
    if python and not SpecifierSet(str(release.python)).contains(f"{python}.0"):
        yield CONTAINER_VERSIONS, pin.line, f"{pin.requirement.name} {_shown(pin)} has no wheels for Python {python}"
    image = _CUDA.search(stage.image)
    if not image or pin.requirement.extras or pin.requirement.name.lower() != "tensorflow":
        return
    has, needs = (int(image[1]), int(image[2])), tuple(map(int, str(release.cuda).split(".")[:2]))
    named = f"TensorFlow {_shown(pin)} needs"
    if has[0] != needs[0] or has < needs:
        yield CONTAINER_VERSIONS, pin.line, f"{named} CUDA {release.cuda}, and the image has {has[0]}.{has[1]}"
    major = str(release.cudnn or "").partition(".")[0]
    if image[3] and major and image[3] != major:
        yield CONTAINER_VERSIONS, pin.line, f"{named} cuDNN {major}, and the image has {image[3]}"


def _known_bad(matrix: VersionMatrix, stage: Stage, exact: Mapping[str, Pin]) -> Iterator[Hit]:
    """Combinations of the matrix whose packages are all pinned."""
    python = _python(stage)
    versions = {name: _version(pin) for name, pin in exact.items()} | ({"python": Version(python)} if python else {})
    for row in matrix.known_bad:
        named = {name.lower().replace("_", "-"): SpecifierSet(str(text)) for name, text in row.when.items()}
        met = all((found := versions.get(name)) and found in specifier for name, specifier in named.items())
        lines = [exact[name].line for name in named if name in exact and not exact[name].is_in_image]
        if met and lines and row.job in (None, _SEVERAL):
            yield CONTAINER_VERSIONS, max(lines), f"{row.id}: {row.symptom.rstrip('.')}"
