"""Detects a container, its engine, and its image."""

import re
from collections.abc import Mapping
from pathlib import Path

from kdoctor.probes.files import read_quietly
from kdoctor.text.secrets import mask

# Parts of a control group's path, and the container engine that creates them.
_CGROUP_MARKS = (
    ("kubepods", "kubernetes"),
    ("docker", "docker"),
    ("libpod", "podman"),
    ("lxc", "lxc"),
    ("containerd", "containerd"),
    ("garden", "garden"),
)
_ASSIGNED = re.compile(r'^(\w+)="([^"\n]*)"$', re.MULTILINE)
_IMAGE_VARIABLES = ("KDOCTOR_IMAGE", "APPTAINER_CONTAINER", "SINGULARITY_CONTAINER")
"""Variables that contain the image; the first is set by the user."""


def container(root: Path, environ: Mapping[str, str]) -> str | None:
    """The container engine; ``container`` if it is unknown, ``none`` outside a container, None if that is unknown."""
    if "KUBERNETES_SERVICE_HOST" in environ:
        return "kubernetes"
    for marker, engine in ((".singularity.d", "apptainer"), (".dockerenv", "docker"), ("run/.containerenv", "podman")):
        if (root / marker).exists():
            return engine
    declared = read_quietly(root / "run/systemd/container") or environ.get("container")
    if declared:
        return declared
    groups = read_quietly(root / "proc/1/cgroup")
    for mark, engine in _CGROUP_MARKS:
        if groups and re.search(rf"(?:^|[/:.-]){mark}", groups, re.MULTILINE):
            return engine
    mounts = read_quietly(root / "proc/self/mountinfo")
    if mounts and re.search(r"^\d+ \d+ \S+ \S+ / .* - overlay ", mounts, re.MULTILINE):
        return "container"
    return "none" if groups and mounts else None


def container_image(root: Path, environ: Mapping[str, str]) -> tuple[str | None, str | None]:
    """The image of this container, and the source of that information; None for both if unknown.

    A container does not know its image. The user can set ``KDOCTOR_IMAGE`` when it is started; Apptainer sets
    a variable; Podman writes ``/run/.containerenv`` for privileged containers
    (https://docs.podman.io/en/latest/markdown/podman-run.1.html).
    """
    for name in _IMAGE_VARIABLES:
        if environ.get(name, "").strip():
            return mask(environ[name].strip()), name
    written = dict(_ASSIGNED.findall(read_quietly(root / "run/.containerenv") or ""))
    image = written.get("image")
    return (mask(image), "/run/.containerenv") if image else (None, None)
