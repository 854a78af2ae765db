"""Whether the driver's half that TensorFlow opens is there, and of the loaded module's version."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.commands.search_path import restore_path, search_without
from kdoctor.facts import Environment, Host, KernelDriver, Libraries, Library, Unavailable
from kdoctor.model import Action, Evidence, Finding, NotApplicable, Outcome, Remedy, Rollback, Severity, Unjudged

_EXPECTED = "libcuda.so.1 of the loaded module's version"


@check("driver.libcuda-found", severity=Severity.ERROR, needs_gpus=True, requires=["driver.library-matches-module"])
def libcuda_found(
    libraries: Libraries, kernel: KernelDriver, environment: Environment, host: Host | Unavailable
) -> Iterator[Outcome]:
    """The driver's library for CUDA programs (libcuda.so.1) is found, and fits the loaded kernel module.

    Why: TensorFlow reaches the GPUs through libcuda.so.1 alone. Without it cuInit fails with UNKNOWN ERROR (303), even
    where nvidia-smi works, which opens another library; a container whose driver capabilities lack "compute" is such
    a place. A copy of another version than the module finds no device.
    Remedy: install the driver's CUDA library or start the container with the capability compute; take a strange copy
    off LD_LIBRARY_PATH.
    Sources:
        https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
        https://github.com/tensorflow/tensorflow/issues/37689
        https://github.com/tensorflow/tensorflow/issues/52530
    Failure modes: libcuda_missing, kernel_dso_mismatch
    """
    library = libraries.find("cuda")
    if not libraries.cuda_build or library is None:
        yield NotApplicable(reason=libraries.note or "this TensorFlow opens no libcuda")
    elif library.status != "found" or library.path is None:
        yield _missing(library, host)
    elif libraries.driver_is_compat:
        yield Evidence(
            subject=library.path, observed=f"for forward compatibility, of driver {libraries.driver_version}"
        )
    elif libraries.driver_version is None or kernel.version is None:
        what = "the library's" if libraries.driver_version is None else "the kernel module's"
        yield Unjudged(subject=library.path, reason=f"{what} version cannot be read")
    elif libraries.driver_version == kernel.version:
        yield Evidence(subject=library.path, observed=f"of driver {libraries.driver_version}, as the kernel module")
    else:
        yield _other_version(library, libraries.driver_version, kernel.version, environment)


def _missing(library: Library, host: Host | Unavailable) -> Finding:
    contained = isinstance(host, Host) and host.container not in (None, "none")
    if contained:
        commands: tuple[str, ...] = (
            "docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility '<image>' '<command>'",
        )
        summary = "Start the container with the NVIDIA runtime and the driver capability compute (Docker's is shown)."
        rollback = Rollback.nothing("a container is started anew; nothing on the host changes")
    else:
        commands = ("cat /proc/driver/nvidia/version", "sudo apt-get install 'libnvidia-compute-<branch>'")
        summary = "Install the driver's compute library of the loaded module's branch (the command is Ubuntu's)."
        rollback = Rollback.to("no such library", "sudo apt-get remove 'libnvidia-compute-<branch>'")
    elsewhere = [copy.path for copy in library.other_copies]
    places = f"; not searched: {', '.join(elsewhere)}" if elsewhere else ""
    why = f" ({library.load_error})" if library.load_error else ""
    return Finding(
        subject=library.soname or "libcuda.so.1",
        observed=f"{library.status}{why}{places}",
        expected=_EXPECTED,
        remedy=Remedy(summary=summary, action=Action.CONFIGURE, commands=commands),
        rollback=rollback,
    )


def _other_version(library: Library, found: str, module: str, environment: Environment) -> Finding:
    observed = f"of driver {found} (found by {library.found_by}), but the kernel module is {module}"
    if library.found_by == "LD_LIBRARY_PATH" and library.path:
        remedy = Remedy(
            summary="Take the folder of the strange copy off LD_LIBRARY_PATH.",
            action=Action.CONFIGURE,
            commands=(search_without([library.path.rpartition("/")[0]], environment),),
        )
        rollback = restore_path(environment)
    else:
        remedy = Remedy(
            summary="Restart, so that the module of the installed version is loaded.",
            action=Action.REBOOT,
            commands=("cat /proc/driver/nvidia/version", "sudo reboot"),
        )
        rollback = Rollback.nothing("a restart changes no configuration")
    return Finding(
        subject=library.path or "libcuda.so.1", observed=observed, expected=_EXPECTED, remedy=remedy, rollback=rollback
    )
