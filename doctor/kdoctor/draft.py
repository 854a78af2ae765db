"""A first checklist of one's own, written from what stands on a machine, with comments."""

from __future__ import annotations

import glob
import textwrap
from collections.abc import Iterator, Mapping

from packaging.version import InvalidVersion, Version

from kdoctor.catalog import Catalog
from kdoctor.checklist import Checklist, load_checklist
from kdoctor.checklist.text import scalar
from kdoctor.facts import Gpus, KerasChoice, Packages, Target, TensorFlowBuild
from kdoctor.judge import FactTable
from kdoctor.lock.facts import WITHHELD, recorded_facts
from kdoctor.model import FAMILIES

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
    packages = dict(_packages(facts))
    if packages:
        yield "  packages:  # those that decide how Keras trains"
        yield from (f"    {name}: {scalar(f'~={version}')}" for name, version in sorted(packages.items()))
    yield from _gpus(facts.get(Gpus))
    variables = {
        name: value
        for name, value in recorded_facts(facts).facts.get("environment", {}).items()
        if value != WITHHELD and name.startswith(("NCCL_", "TF_", "KERAS_", "XLA_", "CUDA_"))
        and not name.startswith("TF_CLI_")
    }  # fmt: skip
    if variables:
        yield "  environment:  # as set here; write `unset` for what must not be set"
        yield from (f"    {scalar(name)}: {scalar(value)}" for name, value in sorted(variables.items()))


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
        "python": "  python:" in stated,
        "packages": "  packages:" in stated,
        "environment": "  environment:" in stated,
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
