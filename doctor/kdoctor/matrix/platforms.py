"""Judges where a release has wheels that use a GPU, and whether it loads the system's CUDA libraries."""

from collections.abc import Iterator

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from kdoctor.matrix.gpus import NamedGpu
from kdoctor.matrix.kernels import Kernels
from kdoctor.matrix.known_bad import overlap
from kdoctor.matrix.model import Platform, Release, VersionMatrix, cudnn_requirement
from kdoctor.matrix.values import meets, numbers, parse_requirement
from kdoctor.matrix.verdict import Machine, Reason


def platform_rule(release: Release, elsewhere: Platform | None, machine: Machine) -> Iterator[Reason]:
    """Whether the release has a wheel for that platform, and one that uses its GPUs."""
    if elsewhere is None:
        return
    if not meets(release.version, elsewhere.wheels, prereleases=True):
        yield Reason("against", "platform", f"it has no wheel for {elsewhere.platform}")
        return
    lacking = elsewhere.lacks.get(release.version)
    if lacking and machine.python and meets(machine.python, lacking):
        yield Reason("against", "platform", f"it has no wheel for {elsewhere.platform} and Python {machine.python}")
    if not machine.for_cpu and (elsewhere.gpu is None or not meets(release.version, elsewhere.gpu, prereleases=True)):
        yield Reason("against", "platform", f"its wheel for {elsewhere.platform} is a CPU build")


def arm_reason(matrix: VersionMatrix, release: Release, machine: Machine, gpu: NamedGpu) -> Reason | None:
    """Why wheels do not run on a GPU of an Arm machine; None if the platform's wheels decide."""
    kind, elsewhere = matrix.capability(gpu.capability), matrix.elsewhere(machine.platform)
    if elsewhere is None or elsewhere.gpu is None:
        text = f"{gpu.name} comes with an Arm processor, for which TensorFlow wheels are CPU builds"
        if matrix.framework == "JAX":
            text = f"{gpu.name} comes with an Arm processor: it is judged with --platform linux-aarch64"
        return Reason("against", "platform", text)
    if kind is not None and kind.embedded:
        if not all(kind.number in kernels.cubins or _has_ptx(kernels, kind.number) for kernels in release.kernels):
            text = f"it has no code for {gpu.shown}, and a Jetson does not run the machine code of another GPU"
            return Reason("against", "gpu", text)
        if kind.server_cuda is None or numbers(release.cuda)[0] < kind.server_cuda:
            text = f"whether its CUDA libraries for Arm servers run on {gpu.name}, whose own come with JetPack"
            return Reason("missing", "platform", text)
    return None


def _has_ptx(kernels: Kernels, number: int) -> bool:
    return Kernels(cubins=(), ptx=kernels.ptx).runs_on(f"{number // 10}.{number % 10}") is not None


def drivers_apart(matrix: VersionMatrix, machine: Machine) -> Iterator[Reason]:
    """Whether one driver can support all GPUs."""
    kinds = [(gpu, kind) for gpu in machine.gpus or () if (kind := matrix.capability(gpu.capability))]
    ends = [(kind.last_branch, gpu) for gpu, kind in kinds if kind.last_branch]
    begins = [(numbers(kind.oldest_driver)[0], kind.oldest_driver, gpu) for gpu, kind in kinds if kind.oldest_driver]
    if not ends or not begins:
        return
    last, old = min(ends, key=lambda pair: pair[0])
    first, driver, new = max(begins, key=lambda item: item[0])
    if first > last:
        text = f"no driver supports both: {old.shown} needs branch {last} or older, and {new.shown} {driver} or newer"
        yield Reason("against", "driver", text)


def system_rule(matrix: VersionMatrix, release: Release, machine: Machine) -> Iterator[Reason]:
    """Whether the release loads the CUDA and cuDNN of the system.

    TensorFlow opens libraries by names with their major version, and refuses a cuDNN that is older than its build's
    (xla/stream_executor/cuda/cuda_dnn.cc). JAX's plugins require what their METADATA requires of the NVIDIA wheels.
    """
    if matrix.framework == "JAX":
        yield from _plugin_rule(release, machine)
        return
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
        elif len(given) == 1 or (release.cudnn is None and not _accepts(cudnn_requirement(release), machine.cudnn)):
            built_with = release.cudnn or "a release that it does not state"
            text = f"whether cuDNN {machine.cudnn} suffices; it was built with {built_with}"
            yield Reason("missing", "libraries", text)


def _plugin_rule(release: Release, machine: Machine) -> Iterator[Reason]:
    """Whether the system's libraries are in the ranges of the plugin's own requirements."""
    major = numbers(release.cuda)[0]
    wanted = (("CUDA", machine.cuda, "nvidia-cuda-runtime"), ("cuDNN", machine.cudnn, "nvidia-cudnn"))
    for label, given, package in wanted:
        line = next((line for line in release.and_cuda or () if line.startswith(package)), None)
        if given is None or line is None:
            continue
        asked = parse_requirement(line)
        other_major = label == "CUDA" and numbers(given)[0] != major
        if other_major or not _accepts(asked, given):
            range_ = f"CUDA {major}" if other_major else f"{label} {asked.specifier}"
            yield Reason("against", "libraries", f"its plugin for CUDA {major} requires {range_}, not {label} {given}")


def _accepts(requirement: Requirement | None, given: str) -> bool:
    """Whether some release that begins with these numbers satisfies a requirement."""
    return requirement is not None and overlap(requirement.specifier, SpecifierSet(f"=={given}.*"))
