"""Judges where a release has wheels that use a GPU, and whether it loads the system's CUDA libraries."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.matrix.model import Platform, Release, VersionMatrix
from kdoctor.matrix.values import numbers, specifier
from kdoctor.matrix.verdict import Machine, Reason


def platform_rule(release: Release, elsewhere: Platform | None, *, for_cpu: bool) -> Iterator[Reason]:
    """Whether the release has a wheel for that platform, and one that uses its GPUs."""
    if elsewhere is None:
        return
    if not specifier(elsewhere.wheels).contains(release.version, prereleases=True):
        yield Reason("against", "platform", f"it has no wheel for {elsewhere.platform}")
    elif not for_cpu and (
        elsewhere.gpu is None or not specifier(elsewhere.gpu).contains(release.version, prereleases=True)
    ):
        yield Reason("against", "platform", f"its wheel for {elsewhere.platform} is a CPU build")


def system_rule(matrix: VersionMatrix, release: Release, machine: Machine) -> Iterator[Reason]:
    """Whether the release loads the CUDA and cuDNN of the system.

    TensorFlow opens libraries by names with their major version, and refuses a cuDNN that is older than its build's
    (xla/stream_executor/cuda/cuda_dnn.cc).
    """
    if machine.cuda is not None:
        built, given = numbers(release.cuda), numbers(machine.cuda)
        if built[0] != given[0]:
            text = f"built with CUDA {release.cuda}, it opens no library of CUDA {machine.cuda}"
            yield Reason("against", "libraries", text)
        elif given[1:2] < built[1:2]:
            text = f"whether libraries of CUDA {machine.cuda} suffice; it was built with CUDA {release.cuda}"
            yield Reason("missing", "libraries", text)
    if machine.cudnn is not None:
        wanted, given = numbers(release.cudnn or str(matrix.cudnn_major(release) or 0)), numbers(machine.cudnn)
        if wanted[0] != given[0] or given < wanted[: len(given)]:
            text = f"built with cuDNN {release.cudnn or wanted[0]}, it does not load cuDNN {machine.cudnn}"
            yield Reason("against", "libraries", text)
