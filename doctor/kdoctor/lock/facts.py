"""The facts of a run as a lock records them: short names, text, no serial numbers, paths or host names."""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from kdoctor.facts import (
    Environment,
    FactGroup,
    Facts,
    Gpus,
    Host,
    KerasChoice,
    KernelDriver,
    Libraries,
    Packages,
    SmokeRun,
    SmokeRuns,
    Target,
    TensorFlowBuild,
    Unavailable,
    canonical_name,
)
from kdoctor.lock.document import Measure
from kdoctor.lock.values import fitting
from kdoctor.records import record
from kdoctor.text.secrets import MASK, is_identifying

WITHHELD = "(set; its value is withheld)"
"""Replaces the value of a variable that would name a path, a device's serial number or a host."""

_OWN_PACKAGES = frozenset({"keras-doctor"})
"""kdoctor's version is recorded separately, as the job does not need it."""
OF_ONE_JOB = ("SLURM_", "PMI_", "OMPI_", "CONDA_", "VIRTUAL_ENV", "RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_")
"""Variables that name the job or the environment. They differ from run to run, and are never recorded."""
_MIB = 1024**2

Section = dict[str, str]

SPEED_FACTOR = 2.0
"""A training step that is slower than recorded by more than this factor is drift. Shared machines vary a lot."""
CPU_JITTER_S = 0.01
"""Added on CPU devices, whose steps last a few milliseconds: on a busy machine a step waits for a core, for as long as
a time slice of the scheduler."""


@record
class Recorded:
    """What a run found, in the form of a lock."""

    facts: Mapping[str, Mapping[str, str]]
    identifiers: bool = False
    """Whether serial numbers and paths are included."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """Sections that could not be read, to the reason."""
    measured: Mapping[str, Measure] = field(default_factory=dict)
    scenarios: frozenset[str] = frozenset()
    """The scenarios that were run."""
    slower: float = SPEED_FACTOR
    """The factor by which a training step may be slower than recorded."""
    own: frozenset[str] = frozenset()
    """The distributions that kdoctor requires."""


STEP_SECONDS = "/step-seconds"
"""Suffix of measures that drift only upwards: a faster step is not drift."""


def recorded_facts(table: Facts, *, identifiers: bool = False, slower: float = SPEED_FACTOR) -> Recorded:
    """The recorded facts by section.

    Args:
        table: the facts of the run.
        identifiers: whether to keep serial numbers and paths.
        slower: the factor by which a training step may be slower than recorded.
    """
    facts: dict[str, Section] = {}
    unread: dict[str, str] = {}
    for section, kind, read in _SECTIONS:
        group = table.get(kind, Unavailable(unavailable="it was not collected"))
        if isinstance(group, Unavailable):
            unread[section] = group.unavailable
        else:
            found = read(group, identifiers)
            if found or section != "conda":
                facts[section] = {**facts.get(section, {}), **fitting(section, found)}
    runs = table.get(SmokeRuns)
    done = {
        name: run
        for name, run in (runs.runs.items() if isinstance(runs, SmokeRuns) else ())
        if isinstance(run, SmokeRun)
    }
    scenarios = {name: value for run in done.values() for name, value in _scenario(run).items()}
    facts["scenarios"] = fitting("scenarios", scenarios)
    measured = {name: measure for run in done.values() for name, measure in _measures(run, slower).items()}
    packages = table.get(Packages)
    return Recorded(
        facts=facts,
        identifiers=identifiers,
        unread=unread,
        measured=measured,
        scenarios=frozenset(done),
        slower=slower,
        own=_required_by_kdoctor(packages) if isinstance(packages, Packages) else frozenset(),
    )


def _texts(**values: object) -> Section:
    """The known values as text; underscores in names become hyphens."""
    return {name.replace("_", "-"): _text(value) for name, value in values.items() if value is not None}


def _text(value: object) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _python(target: Target, identifiers: bool) -> Section:  # noqa: FBT001 - one signature for every section
    found = _texts(
        version=target.version,
        implementation=target.implementation,
        platform=target.platform,
        environment=target.environment,
    )
    return {**found, "executable": target.executable} if identifiers else found


def _packages(packages: Packages, identifiers: bool) -> Section:  # noqa: ARG001, FBT001 - one signature
    found: Section = {}
    for package in packages.installed:
        if package.name not in _OWN_PACKAGES:
            found.setdefault(package.name, package.version or "unknown")
    return found


def _required_by_kdoctor(packages: Packages) -> frozenset[str]:
    """The distributions that kdoctor requires, directly or not, and its own."""
    found: set[str] = set()
    more = set(_OWN_PACKAGES)
    while more := more - found:
        found |= more
        lines = [line for one in packages.installed if one.name in more for line in one.requires]
        more = {canonical_name(re.split(r"[^\w.-]", line, maxsplit=1)[0]) for line in lines if "extra ==" not in line}
    return frozenset(found)


def _conda(packages: Packages, identifiers: bool) -> Section:  # noqa: ARG001, FBT001 - one signature
    """Name to ``version=build``."""
    parted = (entry.partition("=") for entry in packages.conda)
    return {name: release for name, _, release in parted}


def _tensorflow(build: TensorFlowBuild, identifiers: bool) -> Section:  # noqa: ARG001, FBT001 - one signature
    return _texts(
        installed=build.installed,
        distribution=build.distribution,
        version=build.version,
        cuda=build.cuda_version,
        cudnn=build.cudnn_version,
        compute_capabilities=" ".join(build.compute_capabilities) or None,
    )


def _keras(keras: KerasChoice, identifiers: bool) -> Section:  # noqa: ARG001, FBT001 - one signature
    found = _texts(package=keras.package, version=keras.version, legacy=keras.legacy, backend=keras.backend)
    return {**found, **keras.settings}


def _libraries(libraries: Libraries, identifiers: bool) -> Section:  # noqa: FBT001 - one signature
    found: Section = {}
    for library in libraries.libraries:
        found[library.name] = library.version or library.status
        if library.soname:
            found[f"{library.name}.file"] = library.soname
        if library.found_by:
            found[f"{library.name}.found-by"] = library.found_by
        if identifiers and library.path:
            found[f"{library.name}.path"] = library.path
    return found


def _driver(gpus: Gpus, identifiers: bool) -> Section:  # noqa: ARG001, FBT001 - one signature
    return _texts(state=gpus.state, version=gpus.driver_version, cuda=gpus.cuda_driver_version)


def _module(kernel: KernelDriver, identifiers: bool) -> Section:  # noqa: ARG001, FBT001 - one signature
    return _texts(module=kernel.version if kernel.loaded else "not loaded", flavour=kernel.flavour)


def _gpus(gpus: Gpus, identifiers: bool) -> Section:  # noqa: FBT001 - one signature
    """Counts by property: ``model.NVIDIA H100 80GB HBM3: "8"``."""
    shape: Counter[str] = Counter()
    for gpu in gpus.devices:
        memory = gpu.memory_total_bytes // _MIB if gpu.memory_total_bytes is not None else None
        link = f"gen{gpu.pcie_generation_max} x{gpu.pcie_width_max}" if gpu.pcie_width_max is not None else None
        for name, value in (
            ("model", gpu.name),
            ("compute-capability", gpu.compute_capability),
            ("memory-mib", memory),
            ("pcie", link),
        ):
            if value is not None:
                shape[f"{name}.{value}"] += 1
    found = {"count": str(len(gpus.devices)), **{name: str(number) for name, number in shape.items()}}
    if identifiers:
        for gpu in gpus.devices:
            found |= {
                f"{gpu.index}.{name}": value for name, value in (("uuid", gpu.uuid), ("bus", gpu.bus_id)) if value
            }
    return found


def _topology(gpus: Gpus, identifiers: bool) -> Section:  # noqa: ARG001, FBT001 - one signature
    levels = Counter(pair.level for pair in gpus.pairs if pair.level is not None)
    return {f"pairs.{level}": str(number) for level, number in levels.items()}


def _host(host: Host, identifiers: bool) -> Section:  # noqa: FBT001 - one signature
    # Apptainer names its image by a path.
    is_path = host.image is not None and host.image.startswith(("/", "~", "."))
    return _texts(
        os=host.os,
        os_release=host.os_release,
        kernel=host.kernel,
        machine=host.machine,
        libc=host.libc,
        container=host.container,
        image=host.image.rpartition("/")[2] if host.image and is_path and not identifiers else host.image,
    )


def _environment(environment: Environment, identifiers: bool) -> Section:  # noqa: FBT001 - one signature
    return {
        name: WITHHELD
        if MASK in value or (not identifiers and (is_identifying(value) or name == "TF_CONFIG"))
        else value
        for name, value in environment.variables.items()
        if not name.startswith(OF_ONE_JOB)
    }


_SECTIONS: tuple[tuple[str, type[FactGroup], Callable[[Any, bool], Section]], ...] = (
    ("python", Target, _python),
    ("packages", Packages, _packages),
    ("conda", Packages, _conda),
    ("tensorflow", TensorFlowBuild, _tensorflow),
    ("keras", KerasChoice, _keras),
    ("libraries", Libraries, _libraries),
    ("driver", Gpus, _driver),
    ("driver", KernelDriver, _module),
    ("gpus", Gpus, _gpus),
    ("topology", Gpus, _topology),
    ("host", Host, _host),
    ("environment", Environment, _environment),
)


def _scenario(run: SmokeRun) -> Section:
    """The devices of a scenario, and how each case ended."""
    found = {f"{run.scenario}/version": str(run.version), f"{run.scenario}/devices": run.devices_kind}
    for case in run.cases:
        name = f"{run.scenario}/{case.name}"
        found[f"{name}/outcome"] = f"raised {case.error_type}" if case.outcome == "raised" else case.outcome
        if case.replicas is not None:
            found[f"{name}/replicas"] = str(case.replicas)
        if case.losses:
            found[f"{name}/loss"] = "not finite" if case.losses[-1] is None else "finite"
        if case.weights:
            found[f"{name}/weights"] = "not finite" if case.weights.nonfinite else "finite"
            found[f"{name}/mirrored"] = f"{case.weights.mirrored} of {case.weights.variables}"
    return found


LOSS_TOLERANCE = 0.001
"""A loss within this distance is unchanged; ``smoke.baseline`` allows the same between replicas and one device."""


def _measures(run: SmokeRun, slower: float) -> dict[str, Measure]:
    found: dict[str, Measure] = {}
    jitter_s = CPU_JITTER_S if run.devices_kind == "cpu" else 0.0
    for case in run.cases:
        name = f"{run.scenario}/{case.name}"
        if case.losses and case.losses[-1] is not None:
            value = case.losses[-1]
            found[f"{name}/final-loss"] = _measure(value, value - LOSS_TOLERANCE, value + LOSS_TOLERANCE)
        if case.outcome == "trained" and case.step_s is not None and case.step_s > 0:
            low, high = case.step_s / slower - jitter_s, case.step_s * slower + jitter_s
            found[name + STEP_SECONDS] = _measure(case.step_s, max(0.0, low), high)
    return found


def _measure(value: float, low: float, high: float) -> Measure:
    """Rounded to four digits; the rest is noise."""
    return Measure(value=_rounded(value), low=_rounded(low), high=_rounded(high))


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
