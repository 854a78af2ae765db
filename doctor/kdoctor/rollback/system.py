"""Rollback of what is below the environment: container image, CUDA libraries, driver, hardware."""

import re
from collections.abc import Iterator, Mapping, Sequence

from kdoctor.commands.shell import quoted
from kdoctor.commands.system import is_version, restore_driver, restore_library
from kdoctor.engine.report import DriftChange
from kdoctor.facts.libraries import WHEELS
from kdoctor.lock.document import Lock
from kdoctor.rollback.document import RollbackStep, restores, step
from kdoctor.rollback.installers import Installation

_FETCH = {
    "apptainer": "apptainer exec --nv {image} '<command>'",
    "kubernetes": "kubectl set image '<kind>/<name>' '<container>'={image}",
    "podman": "podman pull {image}",
}
"""Container engine to the command that fetches the image; the others use Docker's."""


def image(changes: Sequence[DriftChange], installation: Installation) -> Iterator[RollbackStep]:
    """The recorded image restores everything in it at once."""
    change = next((change for change in changes if change.fact == "host.image" and change.old), None)
    if change is None or change.old is None:
        return
    name = quoted(change.old)
    if installation.container == "apptainer":
        verify = f'test "${{APPTAINER_CONTAINER##*/}}" = {quoted(change.old.rpartition("/")[2])}'
    else:
        verify = f'test "${{KDOCTOR_IMAGE-}}" = {name}'
    yield step(
        "Start the container from the recorded image and run kdoctor in it, or continue below.",
        [change],
        [_FETCH.get(installation.container or "", "docker pull {image}").format(image=name)],
        [verify],
        elsewhere="where containers are started",
    )


def libraries(
    changes: Sequence[DriftChange],
    packages: Sequence[DriftChange],
    lock: Lock,
    installation: Installation,
    by_hand: list[str],
) -> Iterator[RollbackStep]:
    """Libraries of the system. Those of wheels and of conda are restored with their packages."""
    runtime = lock.facts.get("libraries", {}).get("cudart")
    restored: list[DriftChange] = []
    commands: dict[str, str] = {}
    for change in changes:
        name = change.fact.removeprefix("libraries.").partition(".")[0]
        detail = change.fact.endswith((".path", ".found-by", ".file"))
        # A library that the recorded TensorFlow did not open is not needed.
        if change.old is None or name == "cuda" or detail or _in_packages(name, packages):
            continue
        in_wheel = change.new not in (None, "missing") and name not in installation.outside
        found = None
        if installation.manager and not installation.container and not in_wheel:
            found = restore_library(installation.manager, name, change.old, runtime)
        if found is None:
            by_hand.append(
                f"library {'; '.join(restores([change]))}: it is not part of a package that drifted; "
                "kdoctor check shows where the loader finds it"
            )
            continue
        commands.update([found])
        restored.append(change)
    if restored:
        yield step(
            "Restore the recorded CUDA libraries of the system.",
            restored,
            list(commands),
            list(commands.values()),
            needs_root=True,
        )


def _in_packages(library: str, packages: Sequence[DriftChange]) -> bool:
    """Whether a package that brings the library drifted, too."""
    wheel, name = WHEELS.get(library, library), re.escape(library.lower())
    pattern = re.compile(rf"(?:packages\.nvidia-{re.escape(wheel)}(?:-cu\d+)?|conda\.(?:lib)?(?:cuda-)?{name})")
    return any(pattern.fullmatch(change.fact) for change in packages)


def driver(
    changes: Sequence[DriftChange], lock: Lock, installation: Installation, by_hand: list[str]
) -> Iterator[RollbackStep]:
    """The driver's packages, then a restart."""
    drifted = [change for change in changes if change.fact in ("driver.version", "driver.module", "driver.flavour")]
    if not drifted:
        return
    recorded = lock.facts.get("driver", {})
    version = recorded.get("version") or recorded.get("module")
    what = f"NVIDIA driver ({'; '.join(restores(drifted))})"
    if not is_version(version):
        by_hand.append(f"{what}: the lock has no version")
    elif installation.container:
        by_hand.append(f"{what}: it belongs to the host of this container")
    elif installation.manager is None:
        by_hand.append(f"{what}: install {version} with the tool that installs drivers on this system")
    else:
        now = next((change.new for change in drifted if is_version(change.new)), None)
        is_open = recorded.get("flavour") == "open"
        yield step(
            f"Install driver {version} while no job is running, then restart the machine.",
            changes,
            [*restore_driver(installation.manager, version, is_open=is_open, now=now), "sudo systemctl reboot"],
            [
                f"grep -F {version} /proc/driver/nvidia/version",
                f"nvidia-smi --query-gpu=driver_version --format=csv,noheader | grep -F {version}",
            ],
            needs_root=True,
            needs_reboot=True,
        )


_NOT_BY_COMMAND = {
    "gpus": "GPUs were replaced or removed; this cannot be undone by a command",
    "topology": "the GPU interconnect changed; check slots, switches and the BIOS",
    "host": "the system changed; boot the recorded kernel, or restore the image of the machine",
}


def hardware(by_section: Mapping[str, Sequence[DriftChange]]) -> Iterator[str]:
    """What cannot be restored by a command, with the reason."""
    for section, reason in _NOT_BY_COMMAND.items():
        changes = [change for change in by_section.get(section, []) if change.fact != "host.image" or not change.old]
        if changes:
            yield f"{reason} ({'; '.join(restores(changes))})"
