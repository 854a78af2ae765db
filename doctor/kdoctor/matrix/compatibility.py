"""Judges which TensorFlow releases run on a machine, and why the others do not.

Pure: a matrix and a machine in, verdicts out. The rules are the functions named ``_*_rule``; all version data is in the
matrix.

A GPU runs machine code of its major architecture that is not newer than the GPU. Otherwise the driver compiles PTX for
it, and must know that version of PTX: minor-version compatibility does not cover PTX. A release has two kinds of
kernels, compiled and generated ones, and needs code for the GPU in both. With several GPUs, all of them must run the
release.
"""

from collections.abc import Iterator, Mapping, Sequence

from packaging.requirements import Requirement

from kdoctor.matrix.gpus import NamedGpu
from kdoctor.matrix.kernels import Kernels, weakest
from kdoctor.matrix.known_bad import broken_extra, known_bad_rule, overlap, pins_for
from kdoctor.matrix.model import KnownBad, Release, VersionMatrix, cudnn_requirement
from kdoctor.matrix.platforms import arm_reason, drivers_apart, platform_rule, system_rule
from kdoctor.matrix.values import meets, numbers, older_driver, python_minors, specifier
from kdoctor.matrix.verdict import MUSL, Machine, Reason, Verdict


def compatible(matrix: VersionMatrix, machine: Machine) -> tuple[Verdict, ...]:
    """The verdict on every release of the matrix, newest first."""
    return tuple(judge(matrix, release, machine) for release in reversed(matrix.releases))


def best(verdicts: Sequence[Verdict]) -> Verdict | None:
    """The newest release that runs; a pre-release only if no other runs, and a nightly only after those."""
    running = [item for item in verdicts if item.outcome == "runs"]
    return min(running, key=lambda item: (item.release.prerelease, item.release.key.is_devrelease), default=None)


def judge(matrix: VersionMatrix, release: Release, machine: Machine) -> Verdict:
    """The verdict on one release."""
    matrix, elsewhere = matrix.at(machine.platform), matrix.elsewhere(machine.platform)
    if machine.platform not in (None, matrix.platform) and elsewhere is None:
        text = f"the matrix covers {matrix.platform}, not {machine.platform}"
        return Verdict(
            release=release,
            reasons=(Reason("missing", "platform", text),),
            requirements=_requirements(release, machine, {}),
            machine=machine,
        )
    broken = broken_extra(matrix, release, machine)
    listed, release = release, release.model_copy(update={"and_cuda": None}) if broken else release
    pins = pins_for(matrix, release, machine)
    reasons = [
        *platform_rule(release, elsewhere, machine),
        *_python_rule(release, machine),
        *_glibc_rule(release, machine),
        *_processor_rule(machine),
        *known_bad_rule(matrix, release, machine, pins),
    ]
    if not machine.for_cpu:
        reasons += [
            *_driver_rule(matrix, release, machine),
            *_libraries_rule(matrix, release, machine, broken),
            *_gpu_rules(matrix, release, machine, pins),
        ]
    return Verdict(
        release=listed,
        reasons=_one_driver(reasons),
        requirements=_requirements(release, machine, pins),
        machine=machine,
        hidden_folders=() if machine.for_cpu or machine.system_libraries else hidden_folders(matrix, release),
    )


def _one_driver(reasons: Sequence[Reason]) -> tuple[Reason, ...]:
    """The reasons, each once; of several that ask for a newer driver only the one that asks for the newest."""
    newest = max((reason.needed for reason in reasons if reason.needed), key=numbers, default=None)
    return tuple(dict.fromkeys(reason for reason in reasons if reason.needed in (None, newest)))


def hidden_folders(matrix: VersionMatrix, release: Release) -> tuple[str, ...]:
    """Folders of the NVIDIA wheels with libraries that registering a GPU takes, and that the release does not search.

    A library's folder has its name, but for two.
    """
    if release.and_cuda is None or matrix.framework == "JAX":  # JAX finds the wheels by their folders
        return ()
    named = {"cudart": "cuda_runtime", "cublasLt": "cublas"}
    needed = dict.fromkeys(named.get(name, name) for name in matrix.registering)
    return tuple(folder for folder in needed if folder not in release.runpath)


def _python_rule(release: Release, machine: Machine) -> Iterator[Reason]:
    if machine.python is None:
        yield Reason("missing", "python", f"the Python version; wheels exist for {_pythons(release)}")
        return
    minor = ".".join(machine.python.split(".")[:2])
    wanted = release.free_threaded if machine.free_threaded else release.python
    minor = f"{minor}t, the free-threaded build" if machine.free_threaded else minor
    if wanted is None or not meets(minor.partition("t")[0], wanted):
        text = f"wheels exist for {_pythons(release)}, not for Python {minor}"
        yield Reason("against", "python", text, brief=f"no wheel for Python {minor}")


def _glibc_rule(release: Release, machine: Machine) -> Iterator[Reason]:
    if machine.glibc == MUSL:
        yield Reason("against", "glibc", "its wheels need glibc, and the C library is musl: use an image with glibc")
    elif machine.glibc is not None and numbers(machine.glibc) < numbers(release.glibc):
        yield Reason("against", "glibc", f"the wheel needs glibc {release.glibc} or newer, not {machine.glibc}")


def _processor_rule(machine: Machine) -> Iterator[Reason]:
    if machine.without_avx:
        text = "the processor has no AVX, which the wheels use from their first instruction on"
        yield Reason("against", "platform", text, failure="illegal_instruction")


def _driver_rule(matrix: VersionMatrix, release: Release, machine: Machine) -> Iterator[Reason]:
    least = matrix.oldest_driver(release.cuda)
    if least is None:
        yield Reason("missing", "driver", f"the oldest driver for CUDA {release.cuda}")
    elif machine.driver is None:
        text = f"the driver; CUDA {release.cuda} needs {least} or newer"
        yield Reason("missing", "driver", text, needed=least)
    elif older_driver(machine.driver, least):
        text = f"CUDA {numbers(release.cuda)[0]} needs driver {least} or newer, not {machine.driver}"
        yield Reason("against", "driver", text, needed=least)


def _libraries_rule(
    matrix: VersionMatrix, release: Release, machine: Machine, broken: KnownBad | None
) -> Iterator[Reason]:
    if machine.system_libraries:
        yield from system_rule(matrix, release, machine)
        return
    hidden = hidden_folders(matrix, release)
    if hidden:
        folders = ", ".join(f"nvidia/{folder}" for folder in hidden)
        text = f"TensorFlow does not search {folders}: without LD_LIBRARY_PATH as above it registers no GPU"
        yield Reason("caution", "libraries", text, failure="tf2161_runpath")
    if release.and_cuda is None:
        why = f"its [and-cuda] cannot be installed ({broken.symptom})" if broken else "no [and-cuda] extra"
        text = f"{why}: CUDA {release.cuda} and cuDNN {release.cudnn} must be installed on the system"
        yield Reason("caution", "libraries", text, failure=broken.id if broken else None)


def _gpu_rules(
    matrix: VersionMatrix, release: Release, machine: Machine, pins: Mapping[str, Requirement]
) -> Iterator[Reason]:
    yield from drivers_apart(matrix, machine)
    if machine.gpus is None:
        yield Reason("missing", "gpu", f"the GPU; the build has {coverage(release.kernels[0])}")
    for name in machine.unnamed_gpus:
        yield Reason("missing", "gpu", f"the compute capability of {name}")
    for gpu in _distinct(machine.gpus or ()):
        if gpu.arm_only and (found := arm_reason(matrix, release, machine, gpu)):
            yield found
            continue
        yield from _gpu_driver_rule(matrix, machine, gpu)
        yield from _code_rule(matrix, release, machine, gpu)
        if weakest(release.kernels, gpu.capability):
            yield from _cudnn_rule(matrix, release, machine, gpu, pins)


def _distinct(gpus: Sequence[NamedGpu]) -> list[NamedGpu]:
    """One GPU of each capability."""
    return list({(gpu.capability, gpu.arm_only): gpu for gpu in reversed(gpus)}.values())[::-1]


def _gpu_driver_rule(matrix: VersionMatrix, machine: Machine, gpu: NamedGpu) -> Iterator[Reason]:
    """The driver must support the GPU."""
    kind = matrix.capability(gpu.capability)
    if kind is None:
        text = f"the oldest driver for compute capability {gpu.capability}, which the matrix does not list"
        yield Reason("missing", "driver", text)
        return
    if machine.driver is None:
        return
    if kind.oldest_driver is not None and older_driver(machine.driver, kind.oldest_driver):
        text = f"{gpu.shown} needs driver {kind.oldest_driver} or newer, not {machine.driver}"
        yield Reason("against", "driver", text, needed=kind.oldest_driver)
    if kind.last_branch is not None and numbers(machine.driver)[0] > kind.last_branch:
        last = f"branch {kind.last_branch} was the last for {kind.architecture}"
        text = f"driver {machine.driver} no longer supports {gpu.name}: {last}"
        yield Reason("against", "driver", text)


def _code_rule(matrix: VersionMatrix, release: Release, machine: Machine, gpu: NamedGpu) -> Iterator[Reason]:
    codes = [(kernels, kernels.runs_on(gpu.capability)) for kernels in release.kernels]
    lacking = next((kernels for kernels, code in codes if code is None), None)
    by_ptx = [kernels for kernels, code in codes if code == "PTX"]
    if lacking:
        text = f"{_owner(release, lacking)} no code for {gpu.shown}, only {coverage(lacking)}"
        yield Reason("against", "gpu", text, brief=f"no code for {gpu.shown}")
    elif by_ptx:
        yield from _ptx_rule(matrix, release, by_ptx, machine, gpu)


def _owner(release: Release, kernels: Kernels) -> str:
    return "its generated kernels have" if kernels is release.kernel_gen else "the build has"


def _ptx_rule(
    matrix: VersionMatrix, release: Release, by_ptx: Sequence[Kernels], machine: Machine, gpu: NamedGpu
) -> Iterator[Reason]:
    """The driver must compile the newest PTX of the kernels that have no machine code."""
    drivers = [matrix.ptx_driver(kernels, release.cuda) for kernels in by_ptx]
    known = [driver for driver in drivers if driver is not None]
    least = max(known, key=numbers) if len(known) == len(drivers) else None
    newest = by_ptx[drivers.index(least)]
    ptx = f"PTX {newest.ptx_isa}" if newest.ptx_isa else f"PTX of CUDA {release.cuda}"
    why = f"{_owner(release, by_ptx[0])} only {ptx} for {gpu.shown}"
    failure = "ptx_newer_than_driver"
    if least is None:
        yield Reason("missing", "gpu", f"the driver that compiles it; {why}", failure=failure)
    elif machine.driver is None:
        text = f"the driver; {why}, which needs {least} or newer"
        yield Reason("missing", "driver", text, failure=failure, needed=least)
    elif older_driver(machine.driver, least):
        text = f"{why}; compiling it needs driver {least} or newer, not {machine.driver}"
        yield Reason("against", "driver", text, failure=failure, brief=why, needed=least)
    else:
        yield Reason("caution", "gpu", f"{why}; the driver compiles it at the first start, which may take minutes")


def needed_driver(matrix: VersionMatrix, release: Release, gpus: Sequence[NamedGpu]) -> str | None:
    """The oldest driver that runs the release on these GPUs, ignoring cuDNN; None if not known."""
    drivers = [matrix.oldest_driver(release.cuda)]
    for gpu in gpus:
        kind = matrix.capability(gpu.capability)
        if kind is not None and kind.oldest_driver is not None:
            drivers.append(kind.oldest_driver)
        drivers += [
            matrix.ptx_driver(kernels, release.cuda)
            for kernels in release.kernels
            if kernels.runs_on(gpu.capability) == "PTX"
        ]
    known = [driver for driver in drivers if driver is not None]
    return max(known, key=numbers) if known and len(known) == len(drivers) else None


def _cudnn_rule(
    matrix: VersionMatrix, release: Release, machine: Machine, gpu: NamedGpu, pins: Mapping[str, Requirement]
) -> Iterator[Reason]:
    """The cuDNN that is installed with it must have code for the GPU. A range is judged by what it can resolve to."""
    asked = Requirement(f"cudnn=={machine.cudnn}.*") if machine.cudnn else cudnn_requirement(release)
    by_ptx = release.kernels[0].runs_on(gpu.capability) == "PTX"
    if asked is None:
        if by_ptx:
            text = f"whether the system's cuDNN has code for {gpu.name}, which is newer than cuDNN {release.cudnn}"
            yield Reason("missing", "cudnn", text)
        return
    requirement = pins.get(asked.name, asked)
    major = numbers(release.cuda)[0]
    rows = [
        row for row in matrix.cudnn if row.cuda == major and overlap(requirement.specifier, specifier(row.versions))
    ]
    if not rows:
        if by_ptx:
            text = f"whether its cuDNN ({requirement.specifier}) has code for {gpu.shown}"
            yield Reason("missing", "cudnn", text)
        return
    fitting = [row for row in rows if meets(gpu.capability, row.capabilities)]
    if not fitting:
        supported = " or ".join(dict.fromkeys(row.capabilities for row in rows))
        text = f"its cuDNN ({requirement.specifier}) has no code for {gpu.shown}, only for {supported}"
        yield Reason("against", "cudnn", text)
        return
    drivers = [row.oldest_driver for row in fitting if row.oldest_driver is not None]
    least = min(drivers, key=numbers, default=None)
    if least is None or least == matrix.oldest_driver(release.cuda):
        return  # _driver_rule reports it
    if machine.driver is not None and older_driver(machine.driver, least):
        text = f"its cuDNN needs driver {least} or newer for {gpu.name}, not {machine.driver}"
        yield Reason("against", "driver", text, needed=least)


def _requirements(release: Release, machine: Machine, pins: Mapping[str, Requirement]) -> tuple[str, ...]:
    has_extra = release.and_cuda is not None and not machine.for_cpu and not machine.system_libraries
    kept = [str(pin) for pin in pins.values() if has_extra or not pin.name.startswith("nvidia-")]
    extra = f"[{release.extra}]" if has_extra else ""
    if release.distribution == "jax" and machine.system_libraries:
        extra = f"[{release.extra}-local]"  # without a plugin, JAX uses no GPU
    name = release.distribution
    if name == "tensorflow" and machine.for_cpu and machine.packages and machine.packages.find("tensorflow-cpu"):
        name = "tensorflow-cpu"
    return (f"{name}{extra}=={release.version}", *kept)


def _pythons(release: Release) -> str:
    """``Python 3.9 to 3.12``."""
    minors = python_minors(release.python)
    return f"Python {minors[0]}" if len(minors) == 1 else f"Python {minors[0]} to {minors[-1]}"


def coverage(kernels: Kernels) -> str:
    """``machine code for compute capability 6.0 to 9.0 and PTX for 9.0``."""
    ptx = " and ".join(f"{int(target.rstrip('af')) / 10:.1f}{_only(target)}" for target in kernels.ptx)
    machine = f"{min(kernels.cubins) / 10:.1f} to {max(kernels.cubins) / 10:.1f}" if kernels.cubins else "none"
    return f"machine code for compute capability {machine} and PTX for {ptx or 'none'}"


def _only(target: str) -> str:
    return " only" if target.endswith("a") else " and its family" if target.endswith("f") else " and newer"
