"""The way back of what lies beneath the environment: container image, CUDA libraries, driver, hardware."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from packaging.version import Version

from kdoctor.commands.shell import restores
from kdoctor.engine.report import DriftChange
from kdoctor.facts.libraries import WHEELS
from kdoctor.lock.document import Lock
from kdoctor.rollback.installers import HowMade, Manager
from kdoctor.rollback.model import RollbackStep

_VERSION = re.compile(r"\d+(\.\d+)+")

_FETCH = {
    "apptainer": "apptainer exec --nv {image} '<command>'",
    "kubernetes": "kubectl set image '<kind>/<name>' '<container>'={image}",
    "podman": "podman pull {image}",
}
"""Container engine to the command that gets the image; Docker's for the others."""


def image(changes: Sequence[DriftChange], how: HowMade) -> Iterator[RollbackStep]:
    """The recorded image brings back everything in it at once."""
    change = next((change for change in changes if change.fact == "host.image" and change.old), None)
    if change is None or change.old is None:
        return
    name, file = shlex.quote(change.old), shlex.quote(change.old.rpartition("/")[2])
    said_by_file = f'test "${{APPTAINER_CONTAINER##*/}}" = {file}'
    yield RollbackStep(
        title="Start the container from the recorded image again, and ask anew in it; or else go on below.",
        restores=restores([change]),
        commands=(_FETCH.get(how.container or "", "docker pull {image}").format(image=name),),
        verify=(said_by_file if how.container == "apptainer" else f'test "${{KDOCTOR_IMAGE-}}" = {name}',),
        elsewhere="where containers are started",
    )


_OF_TOOLKIT = {
    "cudart": "cuda-cudart", "cublas": "libcublas", "cublasLt": "libcublas", "cufft": "libcufft",
    "cusolver": "libcusolver", "cusparse": "libcusparse", "cupti": "cuda-cupti",
}  # fmt: skip
"""Library to its package of the CUDA toolkit, whose name ends in the toolkit's release: ``libcufft-12-5``."""


def libraries(
    changes: Sequence[DriftChange],
    packages: Sequence[DriftChange],
    lock: Lock,
    how: HowMade,
    by_hand: list[str],
) -> Iterator[RollbackStep]:
    """Libraries that come with wheels or with conda come back with them; others are the system's.

    Names of the packages: NVIDIA's repositories for apt and dnf (https://developer.download.nvidia.com/compute/cuda/).
    """
    left = []
    for change in changes:
        name = change.fact.removeprefix("libraries.").partition(".")[0]
        detail = change.fact.endswith((".path", ".found-by", ".file"))
        is_needed = change.old is not None  # what the recorded TensorFlow did not open need not come back
        if is_needed and name != "cuda" and not detail and not _comes_back(name, packages):
            left.append((name, change))
    commands: list[str] = []
    verify: list[str] = []
    told = []
    for name, change in left:
        package = _system_package(name, change.old, lock, how.manager)
        if package is None or how.container or (change.new not in (None, "missing") and name not in how.outside):
            by_hand.append(f"library {'; '.join(restores([change]))}: it belongs to no package that drifted; see where "
                           "the loader takes it from (kdoctor check)")  # fmt: skip
            continue
        spec, seen = package
        told.append(change)
        commands.append(spec)
        verify.append(seen)
    if told:
        yield RollbackStep(
            title="Bring back the recorded CUDA libraries of the system.",
            restores=restores(told),
            commands=tuple(dict.fromkeys(commands)),
            verify=tuple(dict.fromkeys(verify)),
            needs_root=True,
        )


def _comes_back(library: str, packages: Sequence[DriftChange]) -> bool:
    middle = WHEELS.get(library)
    pattern = re.compile(rf"(?:packages\.nvidia-{middle}(?:-cu\d+)?|conda\.(?:lib)?(?:cuda-)?{library.lower()})")
    return middle is not None and any(pattern.fullmatch(change.fact) for change in packages)


def _system_package(library: str, version: str | None, lock: Lock, manager: Manager | None) -> tuple[str, str] | None:
    """The command that installs the system's package of a library, and the one that sees it; None where not known."""
    if manager is None or version is None or not _VERSION.fullmatch(version):
        return None
    runtime = lock.facts.get("libraries", {}).get("cudart", "")
    release = "-".join(runtime.split(".")[:2]) if _VERSION.fullmatch(runtime) else None
    if library == "cudnn":
        name = f"libcudnn{version.partition('.')[0]}-cuda-{runtime.partition('.')[0]}" if release else None
    elif library == "nccl":
        name = "libnccl2" if manager == "apt" else "libnccl"
    else:
        name = f"{_OF_TOOLKIT[library]}-{release}" if release and library in _OF_TOOLKIT else None
    if name is None:
        return None
    if manager == "apt":
        spec = shlex.quote(f"{name}={version}*")
        return f"sudo apt-get install --allow-downgrades {spec}", f"dpkg-query -W {name} | grep -F {version}"
    return f"sudo dnf install --allowerasing {shlex.quote(f'{name}-{version}*')}", f"rpm -q {name} | grep -F {version}"


def driver(changes: Sequence[DriftChange], lock: Lock, how: HowMade, by_hand: list[str]) -> Iterator[RollbackStep]:
    """The driver's package, when no job runs; then a restart."""
    told = [change for change in changes if change.fact in ("driver.version", "driver.module", "driver.flavour")]
    recorded = lock.facts.get("driver", {})
    version = recorded.get("version") or recorded.get("module")
    if not told:
        return
    what = "; ".join(restores(told))
    if version is None or not _VERSION.fullmatch(version):
        by_hand.append(f"the driver: {what}: no version is on record")
        return
    if how.container:
        by_hand.append(f"the driver ({what}): it is the host's, and this is a container")
        return
    now = next((change.new for change in told if change.new and _VERSION.fullmatch(change.new)), None)
    commands = _driver_commands(version, now, recorded.get("flavour"), how.manager)
    if not commands:
        by_hand.append(f"the driver ({what}): install {version} the way this system gets its driver")
        return
    yield RollbackStep(
        title=f"Install the driver {version} again, when no job runs, and restart the machine.",
        restores=restores(changes),
        commands=(*commands, "sudo systemctl reboot"),
        verify=(
            f"grep -F {version} /proc/driver/nvidia/version",
            f"nvidia-smi --query-gpu=driver_version --format=csv,noheader | grep -F {version}",
        ),
        needs_root=True,
        needs_reboot=True,
    )


PIN_FILE = "/etc/apt/preferences.d/kdoctor-rollback"


def _driver_commands(version: str, now: str | None, flavour: str | None, manager: Manager | None) -> tuple[str, ...]:
    """By the names of NVIDIA's repositories and Ubuntu's (https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/).

    A driver is a dozen packages of one version. For apt a preference above 1000 (apt_preferences(5)) brings all of
    them back together, and keeps them there until the file is removed.
    """
    branch = version.partition(".")[0]
    if manager == "apt":
        package = f"nvidia-driver-{branch}{'-open' if flavour == 'open' else ''}"
        lines = ("Package: *nvidia*", f"Pin: version {version}*", "Pin-Priority: 1001")
        return (
            f"printf '%s\\n' {' '.join(map(shlex.quote, lines))} | sudo tee {PIN_FILE}",
            "sudo apt-get update",
            f"sudo apt-get install --allow-downgrades {package}",
        )
    if manager == "dnf":
        kernel = "kmod-nvidia-open-dkms" if flavour == "open" else "kmod-nvidia-latest-dkms"
        verb = "downgrade" if now and Version(now) > Version(version) else "install"
        specs = (f"nvidia-driver*-{version}*", f"{kernel}-{version}*")
        return (f"sudo dnf {verb} {' '.join(map(shlex.quote, specs))}",)
    return ()


def hardware(by_section: Mapping[str, Sequence[DriftChange]], by_hand: list[str]) -> None:
    """Names what no command brings back."""
    reasons = {
        "gpus": "the GPUs are others or fewer: no command brings a GPU back",
        "topology": "the ways between the GPUs are others: look at slots, switches and the BIOS",
        "host": "the system was changed: boot the recorded kernel, or restore the image of the machine",
    }
    for section, reason in reasons.items():
        changes = [change for change in by_section.get(section, []) if change.fact != "host.image" or not change.old]
        if changes:
            by_hand.append(f"{reason} ({'; '.join(restores(changes))})")
