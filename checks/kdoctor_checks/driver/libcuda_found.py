from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.commands.search_path import restore_path, search_without
from kdoctor.commands.shell import quoted
from kdoctor.commands.system import branch_of
from kdoctor.facts import Environment, Host, KernelDriver, Libraries, Library, Unavailable
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor_checks._driver import with_runtime
from kdoctor_checks._gpus import DRIVER, NEW_CONTAINER, RESTART

_EXPECTED = "libcuda.so.1 in the version of the kernel module"


@check("driver.libcuda-found", severity=Severity.ERROR, needs_gpus=True, requires=DRIVER)
def libcuda_found(
    libraries: Libraries, kernel: KernelDriver, environment: Environment, host: Host | Unavailable
) -> Iterator[Outcome]:
    """The driver's CUDA library (libcuda.so.1) is found and matches the kernel module.

    Why: TensorFlow reaches GPUs only through libcuda.so.1. Without it cuInit fails with UNKNOWN ERROR (303), although
    nvidia-smi, which opens another library, works. This happens in containers without the driver capability "compute".
    A copy of another version than the kernel module finds no GPU.
    Remedy: install the driver's CUDA library, or start the container with the capability compute; remove other copies
    from LD_LIBRARY_PATH.
    Sources:
        https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
        https://github.com/tensorflow/tensorflow/issues/37689
        https://github.com/tensorflow/tensorflow/issues/52530
    Failure modes: libcuda_missing, kernel_dso_mismatch
    """
    library, found, module = libraries.find("cuda"), libraries.driver_version, kernel.version
    if libraries.cuda_build and not libraries.libraries:
        yield Unjudged(subject="libcuda.so.1", reason="the libraries that TensorFlow needs were not read")
    elif library is None:
        yield NotApplicable(reason=libraries.note or "this TensorFlow opens no libcuda")
    elif library.status != "found" or library.path is None:
        yield _missing(library, module, host)
    elif libraries.driver_is_compat:
        yield Evidence(subject=library.path, observed=f"forward-compatibility library (cuda-compat) of driver {found}")
    elif found is None or module is None:
        unknown = "its version" if found is None else "the version of the kernel module"
        yield Unjudged(subject=library.path, reason=f"{unknown} was not read")
    elif found == module:
        yield Evidence(subject=library.path, observed=f"version {found}, like the kernel module")
    else:
        yield _other_version(library, found, module, environment)


def _missing(library: Library, module: str | None, host: Host | Unavailable) -> Finding:
    if isinstance(host, Host) and host.container not in (None, "none"):
        summary = "Start the container with the NVIDIA runtime and the capability compute (Docker command shown)."
        command, rollback = with_runtime(host), NEW_CONTAINER
    else:
        summary = "Install the compute library for the driver branch of the kernel module (Ubuntu command shown)."
        package = quoted(f"libnvidia-compute-{branch_of(module) if module else '<branch>'}")
        command = f"sudo apt-get install {package}"
        rollback = Rollback.to("remove the library again", f"sudo apt-get remove {package}")
    copies = ", ".join(copy.path for copy in library.other_copies)
    return Finding(
        subject=library.soname or "libcuda.so.1",
        observed=("not found" if library.status == "missing" else library.status)
        + (f" ({library.load_error})" if library.load_error else "")
        + (f"; copies that are not searched: {copies}" if copies else ""),
        brief="not found by the loader" if library.status == "missing" else f"found, but {library.status}",
        expected=_EXPECTED,
        remedy=Remedy.configure(
            summary, command, look=("cat /proc/driver/nvidia/version", "ldconfig -p | grep libcuda")
        ),
        rollback=rollback,
    )


def _other_version(library: Library, found: str, module: str, environment: Environment) -> Finding:
    if library.found_by == "LD_LIBRARY_PATH" and library.path:
        folder = library.path.rpartition("/")[0]
        remedy = Remedy.configure(f"Remove {folder} from LD_LIBRARY_PATH.", search_without([folder], environment))
        rollback = restore_path(environment)
    else:
        remedy = Remedy.reboot(
            "Restart to load the kernel module of the installed version.",
            "sudo reboot",
            look=("cat /proc/driver/nvidia/version",),
        )
        rollback = RESTART
    return Finding(
        subject=library.path or "libcuda.so.1",
        observed=f"version {found} (found by {library.found_by}), but the kernel module is {module}",
        brief=f"version {found}, but the kernel module is {module}",
        expected=_EXPECTED,
        remedy=remedy,
        rollback=rollback,
    )
