"""The rows of a version matrix about CUDA and cuDNN: releases, drivers and PTX."""

from collections.abc import Callable, Sequence
from typing import Annotated

from pydantic import Field

from kdoctor.matrix.values import Dotted, Positive, Sources, SpecifierText, Text, VersionText
from kdoctor.yamldoc.validation import StrictPart


class CudaMajor(StrictPart):
    """The oldest driver that runs programs of any release of this major (minor-version compatibility)."""

    major: Positive
    oldest_driver: Dotted
    oldest_windows_driver: Dotted | None = None
    """The same for Windows and WSL2."""
    source: Sources


class CudaRelease(StrictPart):
    """A CUDA toolkit and the driver that came with it."""

    release: Dotted
    """``12.5.1``."""
    driver: Dotted | None = None
    """Its driver, which compiles its PTX; None if not known."""
    windows_driver: Dotted | None = None
    """The same for Windows and WSL2; None for any driver of the branch."""
    source: Sources


class Earlier(StrictPart):
    """The last TensorFlow for an old CUDA, before the matrix begins."""

    tensorflow: VersionText
    cuda: Dotted
    cudnn: Dotted
    python: Text
    """``3.5 to 3.8``."""
    driver: Dotted
    """The oldest driver for that CUDA."""
    source: Sources


class PtxVersion(StrictPart):
    """A version of the PTX language."""

    isa: Dotted
    """``8.5``, as a PTX file states it in ``.version``."""
    cuda: Dotted
    """The CUDA release that introduced it: its drivers and all newer ones compile it."""
    source: Sources


class CudnnSupport(StrictPart):
    """What some releases of cuDNN support."""

    versions: SpecifierText
    cuda: Positive
    """Major release of CUDA that they are built for."""
    capabilities: SpecifierText
    """The compute capabilities that they have code for."""
    oldest_driver: Dotted | None = None
    source: Sources


class ForwardCompatibility(StrictPart):
    """A cuda-compat package, which brings a newer user-space driver for data-center GPUs."""

    cuda: Dotted
    """``12.5`` of ``cuda-compat-12-5``."""
    branches: Annotated[tuple[Positive, ...], Field(strict=False)]
    """The branches of the installed driver on which it works."""
    source: Sources


def windows_drivers(majors: Sequence[CudaMajor], releases: Sequence[CudaRelease]) -> Callable[[str | None], str | None]:
    """Finds the driver of Windows for one of Linux: that of the same CUDA release, else any of the same branch."""
    known = {row.driver: row.windows_driver for row in reversed(releases) if row.windows_driver}
    known |= {row.oldest_driver: row.oldest_windows_driver for row in majors if row.oldest_windows_driver}
    return lambda driver: driver and (known.get(driver) or driver.partition(".")[0])
