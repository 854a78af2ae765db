"""Examines a model and its data in this process, and says what it found."""

from __future__ import annotations

import datetime as dt
import sys
import time
from collections.abc import Iterator
from typing import Any, Literal

from kdoctor.api.notebook import html_of, text_of
from kdoctor.engine.catalog import load_catalog
from kdoctor.engine.judge import PlannedCheck, Rules, conclude, judge
from kdoctor.engine.report import ChecklistName, Report, Result
from kdoctor.facts import SmokeCase, SmokeRun, SmokeRuns
from kdoctor.model import Finding, Severity, Status
from kdoctor.probes.process.records import build
from kdoctor.smoke.own_model import DEFAULT_STEPS, OWN_MODEL

_CASE = "own-model"


class PreflightError(RuntimeError):
    """The job should not start: what is wrong, or what could not be judged. ``preflight`` has the whole report."""

    def __init__(self, preflight: Preflight) -> None:
        super().__init__(preflight.summary())
        self.preflight = preflight
        """Everything that was found."""


class Preflight:
    """What was found of a model and its data. It shows itself as a table in a notebook, and as text elsewhere."""

    def __init__(self, report: Report) -> None:
        self.report = report
        """The report, as every format of kdoctor is written from it."""

    @property
    def ok(self) -> bool:
        """Whether nothing at or over ``fail_on`` failed or is unknown."""
        return self.report.verdict.exit_code == 0

    @property
    def findings(self) -> dict[str, tuple[Finding, ...]]:
        """What is not as it should be, of any severity, by the check's id."""
        return {
            result.id: tuple(judged.finding for judged in result.findings)
            for result in self.report.results
            if result.findings
        }

    def summary(self) -> str:
        """The verdict in one line, and each failure and unknown that counts, with what to do."""
        lines = [f"{self.report.verdict.conclusion.value}: {self.report.verdict.reason}"]
        for result in self.report.results:
            if result.severity.rank >= self.report.fail_on.rank:
                lines += _lines(result)
        return "\n".join(lines)

    def __str__(self) -> str:
        return text_of(self.report)

    def __repr__(self) -> str:
        return text_of(self.report)

    def _repr_html_(self) -> str:
        return html_of(self.report)


def _lines(result: Result) -> Iterator[str]:
    if result.status is Status.UNKNOWN and not result.accepted:
        yield f"- {result.id} is unknown: {result.reason}"
    for judged in result.findings:
        finding = judged.finding
        yield f"- {result.id}: {finding.subject}: {finding.observed}; expected: {finding.expected}"
        yield f"  {finding.remedy.summary}"


def preflight(  # noqa: PLR0913 - what a run of fit is told, too
    model: Any,
    data: Any,
    strategy: Any = None,
    *,
    steps: int = DEFAULT_STEPS,
    steps_per_epoch: int | None = None,
    batch_size: int | None = None,
    fail_on: Literal["error", "warning", "info"] = "error",
    allow_unknown: bool = False,
) -> Preflight:
    """Examine a model and its data before a long ``fit``.

    The model's weights, its optimizer's state, the random state and where the data stands are left as they are:
    copies are trained, and the data is read through a view of its own. What can be read only once is not read.

    Args:
        model: a Keras model, built or not, or a function without arguments that makes one; it is called in the
            strategy's scope, and more than once.
        data: what ``fit`` takes: a ``tf.data.Dataset``, a ``keras.utils.PyDataset``, arrays, or a function without
            arguments that makes one of these or a generator.
        strategy: the ``tf.distribute`` strategy of the job; the current one, unless given.
        steps: how many steps the copies take; 0 leaves the training out.
        steps_per_epoch: what ``fit`` will be told, for data without end.
        batch_size: the same, for arrays.
        fail_on: the least severity that makes it not ``ok``.
        allow_unknown: whether what could not be judged is accepted.
    """
    import tensorflow as tf

    from kdoctor_target.job.examine import Job
    from kdoctor_target.job.parts import replica_devices
    from kdoctor_target.runner.case import plain

    started, started_at = time.monotonic(), dt.datetime.now(dt.timezone.utc)
    strategy = tf.distribute.get_strategy() if strategy is None else strategy
    found: dict[str, Any] = {
        "name": _CASE,
        "outcome": "trained",
        "phase": "strategy",
        "strategy": type(strategy).__name__,
        "replicas": int(strategy.num_replicas_in_sync),
        "devices": replica_devices(strategy),
    }
    job = Job(model, data, steps=steps, steps_per_epoch=steps_per_epoch, batch_size=batch_size)
    try:
        job.examine(
            strategy,
            lambda facts: found.update(job=plain(facts)),
            lambda phase: found.update(phase=phase),
        )
    except Exception as error:  # noqa: BLE001 - whatever the job raises is a fact of the report
        found.update(outcome="raised", error_type=type(error).__name__, error_message=str(error))
    run = SmokeRun(
        scenario=OWN_MODEL,
        version=1,
        devices_kind="gpu" if any("GPU" in device for device in found["devices"]) else "cpu",
        replicas_requested=found["replicas"],
        tensorflow=str(tf.__version__),
        keras=_keras(),
        cases=(build(SmokeCase, found),),
    )
    rules = Rules(today=started_at.date(), fail_on=Severity(fail_on), allow_unknown=allow_unknown)
    results = judge(_plan(), {SmokeRuns: SmokeRuns(runs={OWN_MODEL: run})}, rules)
    return Preflight(
        Report(
            verdict=conclude(results, rules.fail_on),
            target=f"{sys.executable}, {found['strategy']} over {found['replicas']} replicas",
            checklist=ChecklistName(name="preflight", version=1),
            results=results,
            duration_s=time.monotonic() - started,
            started_at=started_at.isoformat(timespec="seconds"),
            fail_on=rules.fail_on,
        )
    )


def guard(  # noqa: PLR0913 - what a run of fit is told, too
    model: Any,
    data: Any,
    strategy: Any = None,
    *,
    steps: int = DEFAULT_STEPS,
    steps_per_epoch: int | None = None,
    batch_size: int | None = None,
    fail_on: Literal["error", "warning", "info"] = "error",
    allow_unknown: bool = False,
) -> Preflight:
    """Examine as :func:`preflight` does, and raise before a long ``fit`` starts that should not.

    Raises:
        PreflightError: something at or over ``fail_on`` failed, or is unknown and not accepted.
    """
    done = preflight(
        model,
        data,
        strategy,
        steps=steps,
        steps_per_epoch=steps_per_epoch,
        batch_size=batch_size,
        fail_on=fail_on,
        allow_unknown=allow_unknown,
    )
    if not done.ok:
        raise PreflightError(done)
    return done


def _plan() -> tuple[PlannedCheck, ...]:
    checks = load_catalog().closure(check.id for check in load_catalog().checks.values() if check.scenario == OWN_MODEL)
    return tuple(PlannedCheck(check=check, severity=check.severity) for check in checks if check.scenario == OWN_MODEL)


def _keras() -> str | None:
    keras = sys.modules.get("keras") or sys.modules.get("tf_keras")
    return f"{keras.__name__} {keras.__version__}" if keras else None
