"""Turns a checklist and the options of a run into the plan that the judge follows."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kdoctor.catalog.load import Catalog
from kdoctor.checklist.resolve import Checklist, ChecklistEntry, ScenarioEntry, matches
from kdoctor.engine.judge import PlannedCheck
from kdoctor.errors import UsageError, did_you_mean


class SelectionError(UsageError):
    """``--select`` or ``--skip`` match nothing, or leave nothing."""


def plan(
    checklist: Checklist, catalog: Catalog, *, select: Sequence[str] = (), skip: Sequence[str] = (), smoke: bool = True
) -> tuple[PlannedCheck, ...]:
    """The checks of a run in the order of the checklist, each after its prerequisites.

    Prerequisites of selected checks are included unless they are skipped. A check selected by its id runs although
    the checklist does not list it. What is left out stays in the plan, with the reason.

    Args:
        checklist: the checks to run.
        catalog: provides prerequisites that the checklist does not list.
        select: patterns (ids, families, globs) of the checks to run; empty for all.
        skip: patterns of the checks to leave out.
        smoke: whether smoke trainings run.

    Raises:
        SelectionError: a pattern matches nothing, or nothing is left.
    """
    select, skip = ([one for given in patterns for one in given.split(",")] for patterns in (select, skip))
    entries = _with_prerequisites(checklist, catalog, select)
    for option, patterns in (("--select", select), ("--skip", skip)):
        for pattern in patterns:
            _must_match(option, pattern, entries, checklist, catalog)
    left_out = {entry.check.id: _left_out(entry, catalog, skip, smoke=smoke) for entry in entries}
    wanted = [
        entry.check.id
        for entry in entries
        if not left_out[entry.check.id] and (not select or any(matches(entry.check, pattern) for pattern in select))
    ]
    if not wanted:
        raise SelectionError("no checks selected", hint=_why_nothing(select, skip, smoke=smoke))
    needed = {check.id for check in catalog.closure(wanted)}
    not_selected = f"not selected (--select {' --select '.join(select)})"
    return tuple(
        PlannedCheck(
            check=entry.check,
            severity=entry.severity,
            parameters=entry.parameters,
            accept_unknown=entry.accept_unknown,
            deselected=left_out[entry.check.id] or (None if entry.check.id in needed else not_selected),
        )
        for entry in entries
    )


def scenarios_to_run(checklist: Checklist, planned: Sequence[PlannedCheck]) -> tuple[ScenarioEntry, ...]:
    """The scenarios that checks of the plan judge, in the order of the checklist, with the settings of these checks."""
    judging = [
        entry
        for entry in planned
        if not entry.deselected and (checklist.assumptions.expects_gpus or not entry.check.needs_gpus)
    ]
    parameters: dict[str | None, dict[str, Any]] = {}
    for entry in judging:
        parameters.setdefault(entry.check.scenario, {}).update(entry.parameters)
    judges_all = any(entry.check.judges_trainings and entry.check.scenario is None for entry in judging)
    return tuple(
        replace(entry, scenario=entry.scenario.with_settings(parameters.get(entry.scenario.id, {})))
        for entry in checklist.scenarios
        if judges_all or entry.scenario.id in parameters
    )


def _with_prerequisites(checklist: Checklist, catalog: Catalog, select: Sequence[str]) -> tuple[ChecklistEntry, ...]:
    listed = {entry.check.id: entry for entry in checklist.entries}
    named = (catalog.checks[name] for name in select if name in catalog.checks)
    # The checklist says which scenarios run, so a check that judges trainings needs it.
    unlisted = [check.id for check in named if not check.judges_trainings]
    ordered: dict[str, ChecklistEntry] = {}
    for check_id in (*listed, *unlisted):
        for check in catalog.closure([check_id]):
            default = ChecklistEntry(check=check, severity=check.severity)
            ordered.setdefault(check.id, listed.get(check.id, default))
    return tuple(ordered.values())


def _left_out(entry: ChecklistEntry, catalog: Catalog, skip: Sequence[str], *, smoke: bool) -> str | None:
    """Why a check is left out, whatever is selected."""
    pattern = next((pattern for pattern in skip if matches(entry.check, pattern)), None)
    if pattern:
        return f"skipped (--skip {pattern})"
    scenario = catalog.scenarios.get(entry.check.scenario or "")
    if entry.check.judges_trainings and not smoke and not (scenario and scenario.needs_options):
        return "smoke trainings are skipped (--no-smoke)"
    return None


def _must_match(
    option: str, pattern: str, entries: Sequence[ChecklistEntry], checklist: Checklist, catalog: Catalog
) -> None:
    if any(matches(entry.check, pattern) for entry in entries):
        return
    elsewhere = [check for check in catalog.checks.values() if matches(check, pattern)]
    if elsewhere:
        more = " and others" if len(elsewhere) > 1 else ""
        message = f"{option} {pattern}: checklist {checklist.name} does not contain {elsewhere[0].id}{more}"
        training = catalog.scenarios.get(elsewhere[0].scenario or "")
        hint = f"To run it, name it in full: --select {elsewhere[0].id}" if option == "--select" else None
        if training:
            where = "" if checklist.assumptions.expects_gpus else " --replicas 2"
            hint = f"To train it: {training.needs_options or f'kdoctor smoke {training.id}{where}'}"
        raise SelectionError(message, hint=hint)
    known = [word for check in catalog.checks.values() for word in (check.id, check.family)]
    raise SelectionError(
        f"{option} {pattern}: no check matches{did_you_mean(pattern, known)}",
        hint="Patterns are ids (gpu.free), families (gpu) or globs ('gpu.*'), also of a --plugin; see: kdoctor list",
    )


def _why_nothing(select: Sequence[str], skip: Sequence[str], *, smoke: bool) -> str:
    options = [f"--select {pattern}" for pattern in select] + [f"--skip {pattern}" for pattern in skip]
    options += [] if smoke else ["--no-smoke"]
    return f"{' '.join(options)} left no check of the checklist."
