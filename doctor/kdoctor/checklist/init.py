"""Writes a first checklist from the current state of a machine, with comments."""

import glob
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from packaging.version import Version

from kdoctor.catalog.load import Catalog
from kdoctor.checklist.load import load_checklist
from kdoctor.checklist.resolve import Checklist
from kdoctor.checklist.text import scalar
from kdoctor.commands.script import comment
from kdoctor.commands.shell import quoted
from kdoctor.commands.system import is_version
from kdoctor.facts import Environment, Facts, Gpus, Host, KerasChoice, Libraries, Packages, Target, TensorFlowBuild
from kdoctor.model import ASSUMPTIONS
from kdoctor.text.secrets import is_identifying
from kdoctor.text.wrap import wrap

_WITH_GPUS, _WITH_ONE, _WITHOUT = "multi-gpu-keras", "single-gpu-keras", "cpu-smoke"
_ALSO = ("keras", "tf-keras", "numpy")
"""Packages besides TensorFlow that affect how Keras trains."""
_TITLES = {
    "versions": "Installed packages and libraries",
    "driver": "NVIDIA driver",
    "gpu": "GPUs, from the bus to TensorFlow",
    "topology": "Links between GPUs and to the host",
    "host": "Host",
    "environment": "Environment variables",
    "smoke": "Smoke trainings",
}
_WIDTH = 110


def draft(facts: Facts, catalog: Catalog, *, file: Path, owner: str, full: bool = False) -> str:
    """The text of a checklist that expects the machine in its current state.

    Args:
        facts: of this machine.
        catalog: has the shipped checklists.
        file: where it will be written; its stem is the checklist's name.
        owner: of the checklist.
        full: list every check and training, instead of extending a shipped checklist.
    """
    start = load_checklist(_shipped_for(facts.get(Gpus), catalog), catalog)
    stated = list(_assumptions(facts))
    name = re.sub(r"[^a-z0-9]+", "-", file.name.partition(".")[0].lower()).strip("-") or "job"
    shown = comment(quoted(str(file)))
    head = _head(name, owner, shown)
    if full:
        lines = [*head, *_everything(start, catalog, stated, owner)]
    else:
        # What is inherited need not be stated again.
        lines = [
            *head,
            *_extension(start, [line for line in stated if not line.startswith("  gpus: {count: 0}")], owner, shown),
        ]
    return "".join(f"{line}\n" for line in lines)


def _shipped_for(gpus: object, catalog: Catalog) -> str:
    """The shipped checklist for a machine with these GPUs."""
    count = len(gpus.devices) if isinstance(gpus, Gpus) else 0
    if count == 1 and _WITH_ONE in catalog.checklists:
        return _WITH_ONE
    return _WITH_GPUS if count else _WITHOUT


def _head(name: str, owner: str, file: str) -> Iterator[str]:
    yield f"# What {name} expects of its machine, written by `kdoctor checklist init` from the current state."
    yield f"# Review it, and loosen or tighten expectations. Then run: kdoctor checklist validate {file}"
    yield "# For completion in an editor: kdoctor schema checklist > checklist.schema.json, and this line:"
    yield "# yaml-language-server: $schema=checklist.schema.json"
    yield ""
    yield "schema: kdoctor/checklist/v1"
    yield f"name: {scalar(name)}"
    yield "version: 1  # increase it when expectations change"
    yield f"owner: {scalar(owner)}"


def _extension(start: Checklist, stated: list[str], owner: str, file: str) -> Iterator[str]:
    """A checklist that states only what differs from the shipped one."""
    yield ""
    yield f"# All checks and trainings of {start.name} apply, also those that later versions of kdoctor add to it."
    yield f"# To see them: kdoctor checklist show {file} --resolved"
    if not start.assumptions.expects_gpus:
        yield f"# No GPU was found here, so GPU checks are skipped. For a GPU machine: extends: {_WITH_GPUS}"
    yield f"extends: {start.name}"
    if stated:
        yield from ("", "# Each assumption is judged by a check, which is added if it is missing.", "assumptions:")
        yield from stated
    yield from (
        "",
        "# To change a check, or to add one (kdoctor list):",
        "# checks:",
        "#   - {id: gpu.free, severity: warning}",
        "",
        "# To leave out what does not apply here:",
        "# without:",
        '#   topology.pairs: "the jobs of this node use one GPU each"',
    )
    yield from _waivers()
    if start.rollback:
        yield from (
            "",
            "# What to do when a check fails. The lists at_once, fix_forward and investigate are inherited.",
        )
        yield from ("rollback:", f"  decides: {scalar(owner)}")


def _waivers() -> Iterator[str]:
    yield from (
        "",
        "# Failures that are accepted for a while. They stay visible, and count again after the last day.",
        "# waivers:",
        '#   - {check: topology.pairs, subject: "GPU 0 - GPU 7", reason: new riser, owner: ada, expires: 2030-03-31}',
    )


def _everything(start: Checklist, catalog: Catalog, stated: list[str], owner: str) -> Iterator[str]:
    """A checklist with every check and training of the shipped one."""
    yield from ("", "assumptions:", *stated)
    yield from ("", "checks:", *_checks(start, catalog, "\n".join(stated)))
    yield from (
        "",
        "# One training that must succeed, one edge case, and one that must fail as expected.",
        "scenarios:",
    )
    for entry in start.scenarios:
        yield f"  - id: {entry.scenario.id}"
        yield f"    kind: {entry.scenario.kind}"
        yield f"    strategy: {entry.scenario.strategy}"
        yield f"    replicas: {entry.replicas}"
        yield "    expect: >-"
        yield from wrap(entry.expect, _WIDTH, first=" " * 6)
    if start.without:
        yield from ("", "without:", *(f"  {key}: {scalar(reason)}" for key, reason in start.without.items()))
    yield from _waivers()
    yield from _rollback(start, owner)


def _assumptions(facts: Facts) -> Iterator[str]:
    """The current state as expectations: minor releases are fixed, patch releases are free."""
    target = facts.get(Target)
    python = re.match(r"([0-9]{1,4})\.([0-9]{1,4})(?![0-9])", target.version) if isinstance(target, Target) else None
    if isinstance(target, Target) and python:
        major, minor = map(int, python.groups())
        yield f'  python: ">={major}.{minor},<{major}.{minor + 1}"  # here: {comment(target.version)}'
    yield from _framework(facts.get(KerasChoice))
    packages = dict(_packages(facts))
    if packages:
        yield "  packages:  # packages that affect how Keras trains"
        yield from (f"    {scalar(name)}: {scalar(f'~={version}')}" for name, version in sorted(packages.items()))
    gpus = facts.get(Gpus)
    yield from _gpus(gpus)
    if isinstance(gpus, Gpus) and gpus.devices:
        yield from _beneath(facts, gpus)
    host = facts.get(Host)
    if isinstance(host, Host) and host.image and "/" not in host.image[:1]:
        yield f"  image: {scalar(glob.escape(host.image))}  # container image, from {comment(host.image_from or '')}"
    variables = _variables(facts)
    flags = dict(_flags(facts, variables))
    if flags:
        yield "  flags:  # in XLA_FLAGS, TF_XLA_FLAGS and keras.json; write `unset` for flags that must not be set"
        yield from (f"    {scalar(name)}: {scalar(value)}" for name, value in sorted(flags.items()))
    variables = {name: value for name, value in variables.items() if name not in _FLAG_VARIABLES}
    if variables:
        yield "  environment:  # as set here; write `unset` for variables that must not be set"
        yield from (f"    {scalar(name)}: {scalar(value)}" for name, value in sorted(variables.items()))


def _framework(keras: object) -> Iterator[str]:
    if isinstance(keras, KerasChoice) and keras.package != "tensorflow":
        backend = f", backend: {scalar(keras.backend)}" if keras.package == "keras" else ""
        yield f"  framework: {{flavour: {scalar(keras.package)}{backend}}}  # Keras 3, or Keras 2 (tf-keras)"


_LIBRARIES = ("cudart", "cudnn", "nccl")
"""Libraries whose version affects a job; the others follow from them."""
_FLAG_VARIABLES = ("XLA_FLAGS", "TF_XLA_FLAGS")


def _beneath(facts: Facts, gpus: Gpus) -> Iterator[str]:
    """Driver, CUDA of the build, and libraries."""
    if is_version(gpus.driver_version):
        yield f'  driver: ">={gpus.driver_version}"  # installed here; newer is fine'
    build = facts.get(TensorFlowBuild)
    if isinstance(build, TensorFlowBuild) and (cuda := _release(build.cuda_version)):
        yield f'  sdk: {{cuda: "~={cuda}"}}  # TensorFlow was built with {comment(build.cuda_version or "")}'
    libraries = facts.get(Libraries)
    found = {item.name: item.version for item in libraries.libraries} if isinstance(libraries, Libraries) else {}
    known = {name: release for name in _LIBRARIES if (release := _release(found.get(name)))}
    if known:
        yield "  libraries:  # as the loader resolves them for TensorFlow"
        yield from (
            f'    {name}: "~={release}"  # here: {comment(found[name] or "")}'
            for name, release in sorted(known.items())
        )


def _release(version: str | None) -> str | None:
    """``major.minor`` of a version that has both."""
    match = re.match(r"[0-9]+\.[0-9]+", version or "")
    return match[0] if match else None


def _variables(facts: Facts) -> dict[str, str]:
    """The variables that affect training, without those that name a path, a device or a host."""
    environment = facts.get(Environment)
    variables = environment.variables if isinstance(environment, Environment) else {}
    return {
        name: value
        for name, value in variables.items()
        if name.startswith(("NCCL_", "TF_", "KERAS_", "XLA_", "CUDA_", "NVIDIA_TF32"))
        and not name.startswith(("TF_CLI_", "TF_CONFIG"))
        and not is_identifying(value)
    }


def _flags(facts: Facts, variables: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    keras = facts.get(KerasChoice)
    if isinstance(keras, KerasChoice):
        yield from ((f"keras.{name}", value) for name, value in keras.settings.items())
    for variable in _FLAG_VARIABLES:
        for word in variables.get(variable, "").split():
            name, _, value = word.lstrip("-").partition("=")
            if word.startswith("-") and re.fullmatch(r"(tf_)?xla_\w+", name):
                yield name, value or "true"


def _packages(facts: Facts) -> Iterator[tuple[str, str]]:
    installed, build, keras = facts.get(Packages), facts.get(TensorFlowBuild), facts.get(KerasChoice)
    if not isinstance(installed, Packages):
        return
    names = [build.distribution] if isinstance(build, TensorFlowBuild) and build.distribution else []
    unused = {"tf-keras"} if isinstance(keras, KerasChoice) and keras.package == "keras" else set()
    for name in [*names, *(name for name in _ALSO if name not in unused)]:
        try:
            version = Version(installed.version(name) or "")
        except ValueError:  # not a version, or one of thousands of digits
            continue
        yield name, version.public if len(version.release) > 1 else f"{version.public}.0"


def _gpus(gpus: object) -> Iterator[str]:
    if not isinstance(gpus, Gpus) or not gpus.devices:
        yield "  gpus: {count: 0}  # no GPU here: GPU checks are skipped, with that reason"
        return
    models = {gpu.name for gpu in gpus.devices}
    expected: dict[str, object] = {"count": len(gpus.devices)}
    (model,) = models if len(models) == 1 else (None,)
    if model:
        expected["model"] = glob.escape(model)
    yield f"  gpus: {scalar(expected)}"


def _checks(start: Checklist, catalog: Catalog, stated: str) -> Iterator[str]:
    """The shipped checklist's checks and those that judge the assumptions, by family, each with its title."""
    listed = {entry.check.id: entry.severity for entry in start.entries}
    judges: Mapping[str, bool] = {
        **{name: f"\n  {name}:" in f"\n{stated}" for name in ASSUMPTIONS},
        "gpus.count": "count: 0}" not in stated,
        "gpus.model": "model:" in stated,
    }
    for check in catalog.checks.values():
        if any(judges.get(assumption) for assumption in check.judges):
            listed.setdefault(check.id, check.severity)
    for family in catalog.families:
        checks = [check for check in catalog.checks.values() if check.family == family and check.id in listed]
        if checks:
            yield f"  # {_TITLES.get(family, family.capitalize())}"
        for check in checks:
            yield f"  - id: {check.id}  # {check.title.rstrip('.')}"
            if listed[check.id] is not check.severity:
                yield f"    severity: {listed[check.id].value}"


def _rollback(start: Checklist, owner: str) -> Iterator[str]:
    policy = start.rollback
    if policy is None:
        return
    yield from ("", "# What to do when a check fails.", "rollback:")
    yield f"  decides: {scalar(owner)}"
    lists = (
        ("at_once", policy.at_once, "something that worked has changed: restore the recorded state first"),
        ("fix_forward", policy.fix_forward, "can be fixed in place"),
        ("investigate", policy.investigate, "investigate first; also the default for checks that are not listed"),
    )
    for name, patterns, why in lists:
        if patterns:
            yield f"  {name}:  # {why}"
            yield from (f"    - {scalar(pattern)}" for pattern in patterns)
