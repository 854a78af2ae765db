"""Records of trainings that contradict themselves or their environment are not evidence."""

from collections.abc import Iterator
from dataclasses import replace

from packaging.version import Version

from kdoctor.facts.base import Facts, Unavailable
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
        if isinstance(run, SmokeRun) and (reason := next(_contradictions(run, facts), ""))
    }
    return {**facts, SmokeRuns: replace(runs, runs={**runs.runs, **refused})} if refused else facts


def _contradictions(run: SmokeRun, facts: Facts) -> Iterator[str]:
    for imported, installed in _versions(run, facts):
        if _differ(imported, installed):
            yield f"it trained with {imported[0]} {imported[1]}, and {installed} is installed"
    for case in run.cases:
        if case.outcome == "trained":
            yield from (f"{case.name} {reason}" for reason in _of_case(case))


def _of_case(case: SmokeCase) -> Iterator[str]:
    """Why a case cannot have trained as it says."""
    if case.signal or case.exit_code:
        yield f"trained, and ended with {case.signal or f'exit status {case.exit_code}'}"
    finished = all(worker.outcome == "trained" for worker in case.workers)
    if finished and 0 in (case.examples, case.global_batch, case.steps):
        yield "trained on no examples"
    if case.workers:
        return  # each worker has its devices
    for names in (case.devices, [name for name in case.bus_ids if name]):
        twice = next((name for name in names if list(names).count(name) > 1), None)
        if twice:
            yield f"has two replicas on {twice}"


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
