"""Whether this is a container, which engine runs it, and which image it was started from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from kdoctor.probes.files import read_quietly
from kdoctor.text.secrets import mask

# Words in a control group's path, and the container engine that puts them there.
_CGROUP_MARKS = (
    ("kubepods", "kubernetes"),
    ("docker", "docker"),
    ("libpod", "podman"),
    ("lxc", "lxc"),
    ("containerd", "containerd"),
    ("garden", "garden"),
)
_ASSIGNED = re.compile(r'^(\w+)="([^"\n]*)"$', re.MULTILINE)
_SAID_BY = ("KDOCTOR_IMAGE", "APPTAINER_CONTAINER", "SINGULARITY_CONTAINER")
"""Variables that name the image; the first is the user's."""


def container(root: Path, environ: Mapping[str, str]) -> str | None:
    """The container engine, ``container`` for one that does not say, ``none``; None where it cannot be told."""
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
    """The image that this container was started from, and who says so; nothing where nothing says so.

    A container does not know its image by itself. The user may say it (``KDOCTOR_IMAGE``, set where the container is
    started); Apptainer names its file in a variable; Podman writes it into ``/run/.containerenv`` for privileged
    containers (https://docs.podman.io/en/latest/markdown/podman-run.1.html).
    """
    for name in _SAID_BY:
        if environ.get(name, "").strip():
            return mask(environ[name].strip()), name
    written = dict(_ASSIGNED.findall(read_quietly(root / "run/.containerenv") or ""))
    image = written.get("image")
    return (mask(image), "/run/.containerenv") if image else (None, None)
