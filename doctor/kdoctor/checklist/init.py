"""A first checklist of one's own, written from what stands on a machine, with comments."""

from __future__ import annotations

import glob
import re
import textwrap
from collections.abc import Iterator, Mapping

from packaging.version import InvalidVersion, Version

from kdoctor.checklist.load import load_checklist
from kdoctor.checklist.resolve import Checklist
from kdoctor.checklist.text import scalar
from kdoctor.engine.catalog import Catalog
from kdoctor.engine.judge import FactTable
from kdoctor.facts import Gpus, Host, KerasChoice, Libraries, Packages, Target, TensorFlowBuild
from kdoctor.lock.facts import WITHHELD, recorded_facts
from kdoctor.model import ASSUMPTIONS, FAMILIES

_WITH_GPUS, _WITHOUT = "multi-gpu-keras", "cpu-smoke"
_ALSO = ("keras", "tf-keras", "numpy")
"""Packages beside TensorFlow that decide how Keras trains."""
_TITLES = {
    "versions": "What is installed fits together, and fits the driver.",
    "driver": "The driver.",
    "gpu": "Every GPU through every layer: bus, driver, environment, TensorFlow.",
    "topology": "How fast the GPUs reach the host and each other.",
    "host": "Where the job runs.",
    "environment": "What the job's shell sets.",
    "smoke": "Trainings.",
    "cluster": "The other machines.",
}
_WIDTH = 110


def draft(facts: FactTable, catalog: Catalog, *, name: str, owner: str) -> str:
    """The text of a checklist that expects the machine as it stands.

    Args:
        facts: what stands here.
        catalog: with the shipped checklists that it starts from.
        name: the checklist's name.
        owner: who owns it.
    """
    gpus = facts.get(Gpus)
    has_gpus = isinstance(gpus, Gpus) and bool(gpus.devices)
    start = load_checklist(_WITH_GPUS if has_gpus else _WITHOUT, catalog)
    stated = list(_assumptions(facts))
    return "".join(f"{line}\n" for line in _lines(start, catalog, stated, name=name, owner=owner))


def _lines(start: Checklist, catalog: Catalog, stated: list[str], *, name: str, owner: str) -> Iterator[str]:
    yield f"# What {name} expects of the machine that it runs on. `kdoctor checklist init` wrote what stands here now:"
    yield "# go through it, and loosen or tighten what is not meant so. Then: kdoctor checklist validate THIS FILE."
    yield "# For an editor's help: kdoctor schema checklist > checklist.schema.json, and this line:"
    yield "# yaml-language-server: $schema=checklist.schema.json"
    yield ""
    yield "schema: kdoctor/checklist/v1"
    yield f"name: {name}"
    yield "version: 1  # raise it with every change of what is expected"
    yield f"owner: {scalar(owner)}"
    yield from ("", "assumptions:", *stated)
    yield from ("", "checks:", *_checks(start, catalog, "\n".join(stated)))
    yield from (
        "",
        "# One training that must go well, one at the edge, and one that must fail as expected.",
        "scenarios:",
    )
    for entry in start.scenarios:
        yield f"  - id: {entry.scenario.id}"
        yield f"    kind: {entry.scenario.kind}"
        yield f"    strategy: {entry.strategy}"
        yield f"    replicas: {entry.replicas}"
        yield "    expect: >-"
        yield from textwrap.wrap(entry.expect, _WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 6)
    if start.without:
        yield from ("", "without:", *(f"  {key}: {scalar(reason)}" for key, reason in start.without.items()))
    yield from (
        "",
        "# A failure that you agreed to live with for a while. It stays visible, and counts again after its last day.",
        "# waivers:",
        '#   - {check: topology.pairs, subject: "GPU 0 - GPU 7", reason: a new riser, owner: ada, expires: 2030-03-31}',
    )
    yield from _rollback(start, owner)


def _assumptions(facts: FactTable) -> Iterator[str]:
    """What stands here, as expectations: the exact release of what decides, and room for its corrections."""
    target = facts.get(Target)
    if isinstance(target, Target):
        major, minor = (int(part) for part in target.version.split(".")[:2])
        yield f'  python: ">={major}.{minor},<{major}.{minor + 1}"  # here: {target.version}'
    yield from _framework(facts.get(KerasChoice))
    packages = dict(_packages(facts))
    if packages:
        yield "  packages:  # those that decide how Keras trains"
        yield from (f"    {name}: {scalar(f'~={version}')}" for name, version in sorted(packages.items()))
    gpus = facts.get(Gpus)
    yield from _gpus(gpus)
    if isinstance(gpus, Gpus) and gpus.devices:
        yield from _beneath(facts, gpus)
    host = facts.get(Host)
    if isinstance(host, Host) and host.image and "/" not in host.image[:1]:
        yield f"  image: {scalar(glob.escape(host.image))}  # the container's, as {host.image_from} says"
    variables = _variables(facts)
    flags = dict(_flags(facts, variables))
    if flags:
        yield "  flags:  # of XLA_FLAGS and TF_XLA_FLAGS, and of keras.json; `unset` for what must not be set"
        yield from (f"    {name}: {scalar(value)}" for name, value in sorted(flags.items()))
    variables = {name: value for name, value in variables.items() if name not in _FLAG_VARIABLES}
    if variables:
        yield "  environment:  # as set here; write `unset` for what must not be set"
        yield from (f"    {scalar(name)}: {scalar(value)}" for name, value in sorted(variables.items()))


def _framework(keras: object) -> Iterator[str]:
    if isinstance(keras, KerasChoice) and keras.package != "tensorflow":
        backend = f", backend: {scalar(keras.backend)}" if keras.package == "keras" else ""
        yield f"  framework: {{flavour: {keras.package}{backend}}}  # Keras 3, or Keras 2 (tf-keras)"


_LIBRARIES = ("cudart", "cudnn", "nccl")
"""Those whose version a job notices; the others come with them."""
_FLAG_VARIABLES = ("XLA_FLAGS", "TF_XLA_FLAGS")


def _beneath(facts: FactTable, gpus: Gpus) -> Iterator[str]:
    """What lies beneath the framework on a machine with GPUs: the driver, the CUDA of the build, the libraries."""
    if gpus.driver_version and re.fullmatch(r"\d+(\.\d+)+", gpus.driver_version):
        yield f'  driver: ">={gpus.driver_version}"  # here now; a newer one will do'
    build = facts.get(TensorFlowBuild)
    if isinstance(build, TensorFlowBuild) and (cuda := _release(build.cuda_version)):
        yield f'  sdk: {{cuda: "~={cuda}"}}  # what TensorFlow was built against: {build.cuda_version}'
    libraries = facts.get(Libraries)
    found = {item.name: item.version for item in libraries.libraries} if isinstance(libraries, Libraries) else {}
    known = {name: release for name in _LIBRARIES if (release := _release(found.get(name)))}
    if known:
        yield "  libraries:  # as the loader would give them to TensorFlow"
        yield from (f'    {name}: "~={release}"  # here: {found[name]}' for name, release in sorted(known.items()))


def _release(version: str | None) -> str | None:
    """Major and minor of a version that has both."""
    match = re.match(r"\d+\.\d+", version or "")
    return match[0] if match else None


def _variables(facts: FactTable) -> dict[str, str]:
    """The variables that change what a job does, without those that name a path, a device or a job."""
    return {
        name: value
        for name, value in recorded_facts(facts).facts.get("environment", {}).items()
        if value != WITHHELD and name.startswith(("NCCL_", "TF_", "KERAS_", "XLA_", "CUDA_", "NVIDIA_TF32"))
        and not name.startswith("TF_CLI_")
    }  # fmt: skip


def _flags(facts: FactTable, variables: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    keras = facts.get(KerasChoice)
    if isinstance(keras, KerasChoice):
        yield from ((f"keras.{name}", value) for name, value in keras.settings.items())
    for variable in _FLAG_VARIABLES:
        for word in variables.get(variable, "").split():
            name, _, value = word.lstrip("-").partition("=")
            if word.startswith("-") and re.fullmatch(r"(tf_)?xla_\w+", name):
                yield name, value or "true"


def _packages(facts: FactTable) -> Iterator[tuple[str, str]]:
    installed, build, keras = facts.get(Packages), facts.get(TensorFlowBuild), facts.get(KerasChoice)
    if not isinstance(installed, Packages):
        return
    names = [build.distribution] if isinstance(build, TensorFlowBuild) and build.distribution else []
    unused = {"tf-keras"} if isinstance(keras, KerasChoice) and keras.package == "keras" else set()
    for name in [*names, *(name for name in _ALSO if name not in unused)]:
        try:
            version = Version(installed.version(name) or "")
        except InvalidVersion:
            continue
        yield name, version.public if len(version.release) > 1 else f"{version.public}.0"


def _gpus(gpus: object) -> Iterator[str]:
    if not isinstance(gpus, Gpus) or not gpus.devices:
        yield "  gpus: {count: 0}  # none is here, so checks of GPUs are skipped, each with that reason"
        return
    models = {gpu.name for gpu in gpus.devices}
    expected: dict[str, object] = {"count": len(gpus.devices)}
    (model,) = models if len(models) == 1 else (None,)
    if model:
        expected["model"] = glob.escape(model)
    yield f"  gpus: {scalar(expected)}"


def _checks(start: Checklist, catalog: Catalog, stated: str) -> Iterator[str]:
    """The shipped list's checks, and those that judge what is stated, by family, each with its healthy condition."""
    listed = {entry.check.id: entry.severity for entry in start.entries}
    judges: Mapping[str, bool] = {
        **{name: f"\n  {name}:" in f"\n{stated}" for name in ASSUMPTIONS},
        "gpus.count": "count: 0}" not in stated,
        "gpus.model": "model:" in stated,
    }
    for check in catalog.checks.values():
        if any(judges.get(assumption) for assumption in check.judges):
            listed.setdefault(check.id, check.severity)
    for family in FAMILIES:
        checks = [check for check in catalog.checks.values() if check.family == family and check.id in listed]
        if checks:
            yield f"  # {_TITLES[family]}"
        for check in checks:
            yield f"  - id: {check.id}  # {check.title.rstrip('.')}"
            if listed[check.id] is not check.severity:
                yield f"    severity: {listed[check.id].value}"


def _rollback(start: Checklist, owner: str) -> Iterator[str]:
    policy = start.rollback
    if policy is None:
        return
    yield from ("", "# Decided now, so that nobody has to at three in the morning.", "rollback:")
    yield f"  decides: {scalar(owner)}"
    lists = (
        ("at_once", policy.at_once, "something that worked was changed: return to the recorded state first"),
        ("fix_forward", policy.fix_forward, "can be mended where it is"),
        ("investigate", policy.investigate, "look into it first, as for all that is named nowhere"),
    )
    for name, patterns, why in lists:
        if patterns:
            yield f"  {name}:  # {why}"
            yield from (f"    - {scalar(pattern)}" for pattern in patterns)
