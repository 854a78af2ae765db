"""Records of trainings that contradict themselves or their environment are not evidence."""

from collections.abc import Iterator
from dataclasses import replace

from packaging.version import Version

from kdoctor.facts.base import Facts, Unavailable
from kdoctor.facts.gpus import Gpus
from kdoctor.facts.smoke import SmokeCase, SmokeRun, SmokeRuns
from kdoctor.facts.tensorflow import KerasChoice, TensorFlowBuild


def consistent(facts: Facts) -> Facts:
    """The same facts, with the runs that contradict themselves as unavailable."""
    runs = facts.get(SmokeRuns)
    if not isinstance(runs, SmokeRuns):
        return facts
    refused = {
        name: Unavailable(unavailable=f"its record contradicts itself: {reason}")
        for name, run in runs.runs.items()
        if isinstance(run, SmokeRun) and (reason := next(_contradictions(name, run, facts), ""))
    }
    return {**facts, SmokeRuns: replace(runs, runs={**runs.runs, **refused})} if refused else facts


def _contradictions(name: str, run: SmokeRun, facts: Facts) -> Iterator[str]:
    if run.scenario != name:
        yield f"it is of {run.scenario}"
    for imported, installed in _versions(run, facts):
        if _differ(imported, installed):
            yield f"it trained with {imported[0]} {imported[1]}, and {installed} is installed"
    names = [case.name for case in run.cases]
    yield from (f"{name} ended twice" for name in names if names.count(name) > 1)
    known = _bus_ids(facts)
    for case in run.cases:
        if case.outcome == "trained":
            yield from (f"{case.name} {reason}" for reason in _of_case(case, known))


def _bus_ids(facts: Facts) -> frozenset[str | None]:
    """The addresses of all GPUs; empty if one was not read."""
    gpus = facts.get(Gpus)
    found = frozenset(gpu.bus_id for gpu in gpus.devices) if isinstance(gpus, Gpus) else frozenset()
    return frozenset() if None in found else found


def _of_case(case: SmokeCase, known: frozenset[str | None]) -> Iterator[str]:
    """Why a case cannot have trained as it says."""
    end = case.signal or case.error_type or (case.exit_code and f"exit status {case.exit_code}")
    if end:
        yield f"trained, and ended with {end}"
    finished = all(worker.outcome == "trained" for worker in case.workers)
    if finished and 0 in (case.examples, case.global_batch, case.steps):
        yield "trained on no examples"
    if case.weights and case.weights.mirrored + case.weights.sharded > case.weights.variables:
        yield f"has more than its variables ({case.weights.variables}) on every replica"
    if case.workers:
        return  # each worker has its devices
    addresses = [name for name in case.bus_ids if name]
    for names in (case.devices, addresses):
        twice = next((name for name in names if list(names).count(name) > 1), None)
        if twice:
            yield f"has two replicas on {twice}"
    foreign = next((name for name in addresses if known and name not in known), None)
    if foreign:
        yield f"trained on {foreign}, which is not a GPU of this machine"


def _versions(run: SmokeRun, facts: Facts) -> Iterator[tuple[tuple[str, str], str]]:
    """What was imported, name and version, and the installed version of it, where both are known."""
    build, keras = facts.get(TensorFlowBuild), facts.get(KerasChoice)
    if run.tensorflow and isinstance(build, TensorFlowBuild) and build.version:
        yield ("TensorFlow", run.tensorflow), build.version
    name, _, version = (run.keras or "").partition(" ")
    if isinstance(keras, KerasChoice) and keras.version and version and name.replace("_", "-") == keras.package:
        yield (name, version), keras.version


def _differ(imported: tuple[str, str], installed: str) -> bool:
    try:
        return Version(imported[1]).public != Version(installed).public
    except ValueError:  # not a version, or one of thousands of digits
        return False
