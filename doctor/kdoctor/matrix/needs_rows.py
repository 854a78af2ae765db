"""What a release requires, as labelled lines."""

from collections.abc import Iterator, Sequence

from kdoctor.matrix.model import GpuKind, KnownBad, Release
from kdoctor.matrix.requirements import Needs
from kdoctor.matrix.values import parse_requirement
from kdoctor.matrix.view import asks, nccl_text, python_range


def main_rows(needs: Needs, platform: str | None = None) -> Iterator[tuple[str, str]]:
    """What decides whether it runs on a machine: label and text. Only builds for Linux need glibc and have NCCL."""
    release = needs.release
    is_linux = platform is None or platform.startswith(("linux", "wsl"))
    with_ptx = f"{needs.ptx_driver or 'not known'} or newer for GPUs that use PTX"
    yield "Driver", f"{needs.oldest_driver or 'not known'} or newer; {with_ptx}"
    glibc = f", glibc {release.glibc} or newer" if is_linux else ""
    avx = "" if platform and platform.endswith(("aarch64", "arm64")) else ", a processor with AVX"
    yield "Python", f"{python_range(release)}{glibc}{avx}"
    cudnn = f"cuDNN {release.cudnn}" if release.cudnn else "cuDNN not stated"
    nccl = f", NCCL {nccl_text(release).partition(' (')[0]}" if is_linux else ""
    yield "Built with", f"CUDA {release.cuda}, {cudnn}{nccl}"
    capabilities = ", ".join(kind.capability for kind in needs.by_machine_code)
    yield "GPUs", f"with machine code: {capabilities or 'none'}"
    examples = ", ".join(f"{kind.capability} ({kind.names[0]})" for kind in needs.by_ptx) or "none"
    yield "", f"with PTX, compiled by the driver: {examples}"
    keras_2 = f"; Keras 2 as tf-keras=={release.tf_keras}" if release.tf_keras else ""
    yield "Keras", f"{', '.join(asks(release, ['keras'])) or 'any'}{keras_2}"


def all_rows(needs: Needs, python: str | None = None) -> Iterator[tuple[str, str]]:
    """Everything that it requires, on that Python if one is given: label and text."""
    release = needs.release
    yield "Driver", f"{needs.oldest_driver or 'not known'} or newer (CUDA {release.cuda})"
    yield "", f"{needs.ptx_driver or 'not known'} or newer for GPUs that use PTX"
    yield "Python", python_range(release)
    yield "glibc", f"{release.glibc} or newer"
    yield "GPUs", f"with machine code: {_kinds(needs.by_machine_code)}"
    yield "", f"with PTX, compiled by the driver: {_kinds(needs.by_ptx)}"
    if needs.excluded:
        yield "", f"excluded, although it has code for them: {_kinds(needs.excluded)}"
    yield "Keras", ", ".join(asks(release, ["keras"])) or "any"
    if release.tf_keras:
        yield "Keras 2", f"tf-keras=={release.tf_keras}, with TF_USE_LEGACY_KERAS=1"
    yield "Packages", ", ".join(line for line in _required(release, python) if not line.startswith("keras"))
    extra = ", ".join(release.and_cuda) if release.and_cuda else "no such extra: install CUDA and cuDNN on the system"
    yield "[and-cuda]", extra
    yield "cuDNN", f"built with {release.cudnn}" if release.cudnn else "not stated by the build"
    yield "NCCL", nccl_text(release)
    yield "Libraries", ", ".join(needs.sonames.values())
    if release.note:
        yield "Note", release.note


def _required(release: Release, python: str | None) -> Iterator[str]:
    for line in release.requires:
        marker = parse_requirement(line).marker
        if python is None or marker is None:
            yield line
        elif marker.evaluate({"python_version": ".".join(python.split(".")[:2])}):
            yield line.partition(";")[0]


def _kinds(kinds: Sequence[GpuKind]) -> str:
    return "; ".join(f"{kind.capability} ({', '.join(kind.names[:3])})" for kind in kinds) or "none"


def known_bad_text(row: KnownBad) -> str:
    """The combination, what happens and what to do."""
    versions = ", ".join(f"{name} {spec}" for name, spec in row.when.items())
    job = f", with {row.job}" if row.job else ""
    return f"{row.id} ({versions}{job}): {row.symptom}. Fix: {row.fix}."


def known_bad_line(row: KnownBad) -> str:
    """The combination and its id; ``kdoctor explain`` tells the rest."""
    versions = ", ".join(f"{name} {spec}" for name, spec in row.when.items())
    return f"{row.id}: {versions}{f', with {row.job}' if row.job else ''}"
