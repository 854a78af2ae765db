from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.commands.packages import install, restore
from kdoctor.facts import Libraries, Packages, PciDevices, Target, TensorFlowBuild, Unavailable
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Remedy, Severity, Unjudged
from kdoctor.text.lists import some
from kdoctor_checks._builds import after_a_gpu, release_of
from kdoctor_checks.versions._libraries import pinned


@check("versions.xla-files", severity=Severity.WARNING, needs_gpus=True, requires=["versions.cuda-build"])
def xla_files(
    libraries: Libraries,
    tensorflow: TensorFlowBuild,
    packages: Packages,
    target: Target,
    pci: PciDevices | Unavailable,
    matrix: VersionMatrix,
) -> Iterator[Outcome]:
    """XLA finds libdevice and ptxas, which it needs to compile for GPUs.

    Why: with jit_compile=True, and wherever TensorFlow uses XLA by default, the first step fails ("libdevice not found
    at ./libdevice.10.bc"), or compiles slowly without ptxas. Jobs that do not use XLA are not affected.
    Remedy: install nvidia-cuda-nvcc for TensorFlow's CUDA, or set the CUDA folder in XLA_FLAGS.
    Sources:
        https://github.com/tensorflow/tensorflow/issues/58681
        https://openxla.org/xla/flags_guidance
    Failure modes: libdevice
    """
    if libraries.note:
        yield NotApplicable(reason=libraries.note)
    elif not libraries.xla_files:
        yield Unjudged(subject="libdevice and ptxas", reason="they were not looked for")
    package = f"nvidia-cuda-nvcc-cu{(tensorflow.cuda_version or '12').partition('.')[0]}"
    pin = pinned(release_of(tensorflow, matrix), package)
    # The package comes with the libraries of [and-cuda].
    explained_by = ("versions.cuda-libraries",) if pin and libraries.lacking() and not packages.find(package) else ()
    for file in libraries.xla_files:
        if file.status == "found":
            yield Evidence(subject=file.name, observed=f"{file.path} ({file.found_by})")
            continue
        yield Finding(
            subject=file.name,
            observed="not found" + (f" (searched: {some(file.searched)})" if file.searched else ""),
            brief="not found where XLA searches",
            explained_by=explained_by,
            after=after_a_gpu(pci),
            expected=f"{file.name} on XLA's search path",
            remedy=Remedy.reinstall(
                f"Install {package}, set the folder of a CUDA toolkit (XLA_FLAGS=--xla_gpu_cuda_data_dir=...), "
                "or do not use jit_compile.",
                install(target, packages, pin or package),
            ),
            rollback=restore(target, packages, package),
        )
