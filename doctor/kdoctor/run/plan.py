"""What the options of a run mean: its checklist, checks, rules, lock and trainings."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from kdoctor.catalog.load import Catalog
from kdoctor.check import Check
from kdoctor.checklist.for_scenarios import checklist_of, choose_scenarios, with_scenario
from kdoctor.checklist.gpus import with_gpus, without_gpus
from kdoctor.checklist.load import load_checklist
from kdoctor.checklist.plan import plan, scenarios_to_run
from kdoctor.checklist.resolve import Checklist
from kdoctor.engine.judge import PlannedCheck, Rules, asks_for
from kdoctor.engine.report import ChecklistName
from kdoctor.errors import UsageError
from kdoctor.facts import Environment, Facts, Gpus, SmokeRuns, Target
from kdoctor.lock.document import Lock
from kdoctor.lock.record import expectations_of
from kdoctor.lock.store import load_lock
from kdoctor.matrix.load import load_matrix
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import Assumptions, Severity
from kdoctor.records import record
from kdoctor.run.log import warn
from kdoctor.run.session import RequestedTraining
from kdoctor.smoke.scenario import AddedTraining, Scenario, Strategy, Tier
from kdoctor.text.instants import problem_of

_ONE_GPU = "single-gpu-keras"


@record
class Plan:
    """What facts are judged by."""

    checklist: Checklist
    checks: tuple[PlannedCheck, ...]
    rules: Rules
    lock_file: Path | None = None
    """Where the checklist's lock is or would be; None where the run is not compared with the last passing one."""
    lock: Lock | None = None
    scope: str = ""
    """The options that narrow the run. The history compares only runs of the same scope."""
    command: str = ""
    """The command that runs the same checks again; empty if no command did."""

    @property
    def asked(self) -> ChecklistName:
        """What is asked, for the report: runs that were asked the same are comparable."""
        options = [self.scope] if self.scope else []
        options += [f"--fail-on {self.rules.fail_on.value}"] if self.rules.fail_on is not Severity.ERROR else []
        options += ["--allow-unknown"] if self.rules.allow_unknown else []
        return replace(self.checklist.title, options=" ".join(options), expectations=expectations_of(self.checklist))

    def trainings(self, replicas: int | None = None, added: Sequence[AddedTraining] = ()) -> list[RequestedTraining]:
        """The trainings that the checks wait for.

        Args:
            replicas: number of logical CPU devices for every training; None follows the checklist.
            added: what options of plugins ask for. Other scenarios that need such options are left out.
        """
        by_id = {training.scenario.id: training.scenario for training in added}
        return [
            RequestedTraining(
                scenario=by_id.get(entry.scenario.id, entry.scenario),
                replicas=replicas or (None if entry.replicas == "gpus" else entry.replicas),
            )
            for entry in scenarios_to_run(self.checklist, self.checks)
            if entry.scenario.id in by_id or not entry.scenario.needs_options
        ]


@record
class RunOptions:
    """The options of a command that judges by a checklist."""

    checklist: str
    select: Sequence[str] = ()
    skip: Sequence[str] = ()
    smoke: bool = True
    gpus: int | None = None
    """The number of usable GPUs to expect, instead of what the checklist says."""
    replicas: int | None = None
    added: Sequence[AddedTraining] = ()
    """What options of plugins ask for."""
    snapshot: Path | None = None
    fail_on: Severity = Severity.ERROR
    allow_unknown: bool = False
    matrix: str | None = None
    lock: Path | None = None
    use_lock: bool = True
    command: str = ""

    def for_recording(self, facts: Facts) -> RunOptions:
        """The options where the user names no checklist.

        Output of other tools with one GPU does not show whether more were expected, so it is judged as a machine with
        one. A snapshot of this machine also contains the environment, and is judged like the machine.
        """
        gpus = facts.get(Gpus)
        is_imported = Environment not in facts and Target not in facts
        names_number = self.gpus is not None or self.lock is not None
        if is_imported and not names_number and isinstance(gpus, Gpus) and gpus.count == 1:
            return replace(self, checklist=_ONE_GPU)
        return self

    def for_backend(self, catalog: Catalog, backend: str | None) -> RunOptions:
        """The options where the user names no checklist: the checklist of the job's backend, if one is shipped.

        Args:
            catalog: what may be used.
            backend: the value of ``KERAS_BACKEND``.
        """
        name = f"multi-gpu-{backend}"
        return replace(self, checklist=name) if backend and name in catalog.checklists else self

    @property
    def scope(self) -> str:
        """The options that narrow the run."""
        parts = [f"--select {item}" for item in self.select] + [f"--skip {item}" for item in self.skip]
        parts += [] if self.smoke else ["--no-smoke"]
        parts += [
            f"--{name} {value}"
            for name, value in (("gpus", self.gpus), ("replicas", self.replicas))
            if value is not None
        ]
        parts += [training.options for training in self.added]
        return " ".join(parts + ([f"--snapshot {self.snapshot}"] if self.snapshot else []))

    def plan(self, catalog: Catalog, recorded: Sequence[Scenario] = ()) -> Plan:
        """Read everything that the run is judged by, so that a broken file ends it before any training.

        Args:
            catalog: what may be used.
            recorded: the scenarios of a snapshot that ran because options asked for them.

        Raises:
            UsageError: the checklist, its lock or the version matrix is broken, options contradict each other, or
                nothing is left to check.
        """
        if self.lock and not self.use_lock:
            raise UsageError("--lock cannot be used with --no-lock")
        if self.replicas and self.snapshot:
            raise UsageError("--replicas cannot be used with --snapshot", hint="A snapshot is judged without training.")
        checklist = load_checklist(self.checklist, catalog)
        for scenario in (*(training.scenario for training in self.added), *recorded):
            checklist = with_scenario(checklist, catalog, scenario)
        asks_for_gpus = checklist.assumptions.expects_gpus
        if self.gpus is not None:
            checklist = with_gpus(checklist, catalog, self.gpus)
        checks = plan(checklist, catalog, select=self.select, skip=self.skip, smoke=self.smoke)
        if asks_for_gpus and not checklist.assumptions.expects_gpus:
            checks = without_gpus(checks)
        if self.replicas and not scenarios_to_run(checklist, checks):
            hint = "Remove it, or the options that leave out the trainings (--no-smoke, --select, --skip)."
            raise UsageError(f"--replicas {self.replicas}: this run trains nothing", hint=hint)
        lock_file, lock = load_lock(checklist, self.lock) if self.use_lock else (None, None)
        if lock and (problem := problem_of(lock.recorded)):
            warn(f"kdoctor: {lock_file}: {problem}")
        rules = checklist.rules(today=today(), fail_on=self.fail_on, allow_unknown=self.allow_unknown)
        return Plan(
            checklist=checklist,
            checks=checks,
            rules=with_matrix(rules, checks, self.matrix),
            lock_file=lock_file,
            lock=lock,
            scope=self.scope,
            command=self.command,
        )


def smoke_plan(
    catalog: Catalog,
    scenarios: Sequence[str],
    *,
    strategy: Strategy | None,
    tier: Tier | None,
    gpus: int | None = None,
    replicas: int | None,
    fail_on: Severity,
    allow_unknown: bool,
    command: str = "",
) -> Plan:
    """The plan of a run that only trains.

    Raises:
        UsageError: no scenario matches, the version matrix is broken, or GPUs are expected of trainings on the CPU.
    """
    if gpus is not None and replicas is not None:
        raise UsageError("--gpus and --replicas exclude each other: --replicas trains on CPU devices")
    chosen = choose_scenarios(catalog, scenarios, strategy=strategy, tier=tier)
    name = f"smoke-{tier or ('chosen' if scenarios or strategy else 'quick')}"
    checklist = checklist_of(catalog, chosen, name, replicas=replicas)
    if gpus is not None:
        checklist = with_gpus(checklist, catalog, gpus)
    checks = plan(checklist, catalog)
    rules = checklist.rules(today=today(), fail_on=fail_on, allow_unknown=allow_unknown)
    narrowed = [entry.id for entry in chosen] if scenarios else []
    narrowed += [f"--strategy {strategy}"] if strategy else []
    named = (("gpus", gpus), ("replicas", replicas))
    narrowed += [f"--{name} {value}" for name, value in named if value is not None]
    scope = " ".join(narrowed)
    return Plan(checklist=checklist, checks=checks, rules=with_matrix(rules, checks), scope=scope, command=command)


def plan_without_checklist(
    name: str,
    source: str,
    checks: Iterable[Check],
    *,
    parameters: Mapping[str, Mapping[str, object]] = MappingProxyType({}),
    fail_on: Severity = Severity.ERROR,
    allow_unknown: bool = False,
) -> Plan:
    """The plan of checks that no checklist names.

    Args:
        name: what reports call the plan.
        source: where it comes from.
        checks: the checks.
        parameters: of checks, by their ids.
        fail_on: minimum severity of a failure.
        allow_unknown: whether required checks may be inconclusive.
    """
    checklist = Checklist(name=name, version=1, owner="kdoctor", source=source, assumptions=Assumptions(), entries=())
    planned = tuple(
        PlannedCheck(check=check, severity=check.severity, parameters=dict(parameters.get(check.id, {})))
        for check in checks
    )
    rules = checklist.rules(today=today(), fail_on=fail_on, allow_unknown=allow_unknown)
    return Plan(checklist=checklist, checks=planned, rules=with_matrix(rules, planned))


def today() -> dt.date:
    """The date in UTC."""
    return dt.datetime.now(dt.timezone.utc).date()


def with_matrix(rules: Rules, checks: Sequence[PlannedCheck], file: str | None = None) -> Rules:
    """The rules with the version matrix, if a check that will be evaluated asks for it.

    Args:
        rules: the rules of the run.
        checks: its checks.
        file: a custom matrix. It is always read, so that a mistake in it is reported. Without it
            ``KDOCTOR_MATRIX`` may name one.

    Raises:
        kdoctor.matrix.load.MatrixError: a matrix is broken.
    """
    if file is None and not asks_for(checks, VersionMatrix, rules):
        return rules
    return replace(rules, matrix=load_matrix(file, os.environ))


def recorded_with_options(facts: Facts, catalog: Catalog) -> tuple[Scenario, ...]:
    """The scenarios in these facts that run only if options ask for them."""
    runs = facts.get(SmokeRuns)
    names = runs.runs if isinstance(runs, SmokeRuns) else ()
    known = (catalog.scenarios[name] for name in names if name in catalog.scenarios)
    return tuple(scenario for scenario in known if scenario.needs_options)
