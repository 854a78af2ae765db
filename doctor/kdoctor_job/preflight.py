"""Examines a model and its data in this process."""

from __future__ import annotations

import contextlib
import datetime as dt
import inspect
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec

from kdoctor.catalog.explanations import explain_exception
from kdoctor.catalog.load import load_catalog
from kdoctor.commands.again import program
from kdoctor.commands.shell import quoted
from kdoctor.engine.report import Report, Result
from kdoctor.facts import PciDevices, SmokeCase, SmokeRun, SmokeRuns, Unavailable
from kdoctor.facts.visible import VARIABLE
from kdoctor.model import Finding, Severity, Status
from kdoctor.probes.pci import read_devices
from kdoctor.probes.process.records import build
from kdoctor.report.causes import cause_blocks
from kdoctor.report.formats import render
from kdoctor.report.html.write import render_notebook
from kdoctor.report.phrases import describe_reason, verdict_line
from kdoctor.run.assemble import build_report
from kdoctor.run.plan import Plan, plan_without_checklist
from kdoctor.run.session import Collected
from kdoctor.text.kinds import describe_kind
from kdoctor.text.lists import counted
from kdoctor.text.sanitize import cleaned
from kdoctor_job.in_fresh_processes import restored
from kdoctor_job.own_model import DEFAULT_STEPS, OWN_MODEL

if TYPE_CHECKING:
    from typing_extensions import Self

_P = ParamSpec("_P")
_CASE = "own-model"
_QUIET_S = 10.0
"""Seconds until the first line of progress."""


class PreflightError(RuntimeError):
    """The job should not start, because a check failed or could not be evaluated."""

    __module__ = "kdoctor"  # the name that users import it by, in tracebacks

    def __init__(self, preflight: Preflight) -> None:
        super().__init__(preflight.summary())
        self.preflight = preflight
        """The whole result."""


class Preflight:
    """The result for a model and its data. It is shown as a table in a notebook, and as text elsewhere."""

    def __init__(self, report: Report) -> None:
        self.report = report
        """The report that every output format is written from."""

    @property
    def ok(self) -> bool:
        """Whether no check at or above ``fail_on`` failed or is unknown."""
        return self.report.verdict.exit_code == 0

    @property
    def findings(self) -> dict[str, tuple[Finding, ...]]:
        """Findings of any severity, by the id of their check."""
        return {
            result.id: tuple(judged.finding for judged in result.findings)
            for result in self.report.results
            if result.findings
        }

    def summary(self) -> str:
        """The verdict, and each failure and unknown that counts with its fix."""
        lines = [verdict_line(self.report)]
        counting = [item for item in self.report.results if item.severity.rank >= self.report.fail_on.rank]
        explained = {check for cause in self.report.causes for check in cause.explains}
        lines += [line for item in counting if item.id not in explained for line in _failures(item)]
        return "\n".join([*lines, *_unknowns(counting)])

    def require(self) -> Self:
        """Print the verdict and each warning, or raise if the job should not start. Nothing is examined again.

        Raises:
            PreflightError: it is not ``ok``.
        """
        if not self.ok:
            raise PreflightError(self)
        lines = [f"{verdict_line(self.report)}; {self.report.target.partition(', ')[2]}"]
        warned = [(block.id, text) for block in cause_blocks(self.report) for text in block.findings]
        lines += [f"warning: {text}; see: {quoted(*program(), 'explain', name)}" for name, text in warned]
        sys.stdout.write("".join(f"kdoctor: {line}\n" for line in lines))
        return self

    def __str__(self) -> str:
        return render(self.report, "terminal").rstrip("\n")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return render_notebook(cleaned(self.report))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Print why a ``fit`` in the ``with`` block raised, if kdoctor knows the failure. The exception goes on."""
        text = explain_exception(error) if isinstance(error, Exception) else ""
        sys.stderr.write(f"kdoctor: {text}" if text else "")


def _failures(result: Result) -> Iterator[str]:
    for judged in result.findings:
        finding = judged.finding
        yield f"- {result.id}: {finding.subject}: {finding.observed} (expected: {finding.expected})"
        yield f"  Fix: {finding.remedy.summary}"


def _unknowns(results: Iterable[Result]) -> Iterator[str]:
    """Each reason once, with the checks that it prevented."""
    by_reason: dict[str, list[str]] = {}
    for result in results:
        if result.status is Status.UNKNOWN and not result.accepted:
            by_reason.setdefault(describe_reason(result), []).append(result.id)
    for reason, checks in by_reason.items():
        yield f"- {', '.join(checks)} unknown: {reason}"


def preflight(  # noqa: PLR0913 - the arguments of fit
    model: Any,
    data: Any,
    strategy: Any = None,
    *,
    steps: int = DEFAULT_STEPS,
    steps_per_epoch: int | None = None,
    batch_size: int | None = None,
    fit_arguments: Mapping[str, Any] | Callable[..., Mapping[str, Any]] | None = None,
    budget_s: float | None = None,
    restore: str | Path | None = None,
    fail_on: Literal["error", "warning", "info"] = "error",
    allow_unknown: bool = False,
    **arguments: Any,
) -> Preflight:
    """Examine a model and its data before a long ``fit``.

    The weights, the optimizer state, the random state and the position in the data do not change: copies are trained,
    and the data is read through its own iterator. Data that can be read only once is not read.

    Args:
        model: a Keras model, built or not, or a function without arguments that returns one. The function is called
            in the strategy's scope.
        data: a ``tf.data.Dataset``, a ``keras.utils.PyDataset``, arrays, or a function without arguments that returns
            one of these or a generator.
        strategy: the ``tf.distribute`` strategy of the job. Defaults to the current one, then to the model's own.
        steps: number of training steps of the copies; 0 skips the training.
        steps_per_epoch: the argument of ``fit``, for infinite datasets.
        batch_size: the argument of ``fit``, for arrays.
        fit_arguments: other arguments of ``fit``, by name: ``class_weight``, ``sample_weight``, ``validation_data`` and
            ``validation_split`` are used for the copies. ``callbacks`` are not run, because they may write files.
            Or a function that returns them.
        arguments: further arguments of ``fit``.
        budget_s: seconds for the trainings. A comparison that would take longer is left out and reported as unknown.
        restore: also save, kill and restore the job in fresh processes, in a new folder inside this one. ``model``,
            ``data`` and ``fit_arguments`` must be functions of a module that they can import. On GPUs, this process
            must have set memory growth.
        fail_on: minimum severity of a failure that makes it not ``ok``.
        allow_unknown: whether it is ``ok`` if required checks could not be evaluated.
    """
    import tensorflow as tf

    from kdoctor_job.target.examine import Job
    from kdoctor_job.target.parts import replica_devices
    from kdoctor_job.target.script import stop_at_guard
    from kdoctor_job.target.strategies import workers_of

    fit_arguments = _with(arguments, fit_arguments)
    started, started_at = time.monotonic(), dt.datetime.now(dt.timezone.utc)
    strategy = _strategy(tf, model) if strategy is None else strategy
    if not isinstance(strategy, tf.distribute.Strategy):
        raise TypeError(f"expected a strategy, found {describe_kind(strategy)}: guard(model, data, strategy)")
    found: dict[str, Any] = {
        "name": _CASE,
        "outcome": "trained",
        "phase": "strategy",
        "strategy": type(strategy).__name__,
        "replicas": int(strategy.num_replicas_in_sync),
        "devices": replica_devices(strategy),
    }
    job = Job(model, data, steps, steps_per_epoch, batch_size, budget_s, fit_arguments)
    later = stop_at_guard(model, data, fit_arguments, steps_per_epoch=steps_per_epoch, batch_size=batch_size)
    with _without_notes(tf.get_logger()), progress_lines(found):
        _examine(job, strategy, found)
    workers = workers_of(strategy.cluster_resolver)
    found["job"] = {**found.get("job", {}), "gpus": _gpus(tf, strategy), "workers": workers}
    run = SmokeRun(
        scenario=OWN_MODEL,
        version=1,
        devices_kind="gpu" if any("GPU" in device for device in found["devices"]) else "cpu",
        replicas_requested=found["replicas"],
        tensorflow=str(tf.__version__),
        keras=_keras(),
        cases=(build(SmokeCase, found),),
    )
    if restore is not None:
        parts = {"model": model, "data": data, "fit_arguments": fit_arguments}
        again = restored(parts, Path(restore), steps=steps, steps_per_epoch=steps_per_epoch, run=run)
        run = replace(run, cases=(*run.cases, again))
    collected = Collected(
        facts={SmokeRuns: SmokeRuns(runs={OWN_MODEL: run})},
        target=f"{sys.executable}, {_over(strategy)}",
        started_at=started_at,
        duration_s=time.monotonic() - started,
    )
    return Preflight(build_report(collected, _plan(Severity(fail_on), allow_unknown=allow_unknown or later)))


def _with(arguments: Mapping[str, Any], given: Mapping[str, Any] | Callable[..., Mapping[str, Any]] | None) -> Any:
    if not arguments or given is None:
        return arguments or given
    if callable(given):
        raise TypeError(f"fit_arguments is a function, which should return {', '.join(arguments)}, too")
    return {**given, **arguments}


def _strategy(tf: Any, model: Any) -> Any:
    """The current strategy, or the one in whose scope the model was made, with which ``fit`` trains it."""
    from kdoctor_job.target.model import strategy_of_model
    from kdoctor_job.target.parts import is_default

    current = tf.distribute.get_strategy()
    return (strategy_of_model(model) or current) if is_default(current) else current


def _examine(job: Any, strategy: Any, found: dict[str, Any]) -> None:
    """Note the facts of the case, and how it ends."""
    from kdoctor_target.runner.case import NotHere, plain

    try:
        job.examine(strategy, lambda facts: found.update(job=plain(facts)), lambda phase: found.update(phase=phase))
    except NotHere as error:
        found.update(outcome="skipped", skip_reason=str(error))
    except Exception as error:  # noqa: BLE001 - the job may raise anything, which is a fact to report
        found.update(outcome="raised", error_type=type(error).__name__, error_message=str(error))


def _over(strategy: Any) -> str:
    from kdoctor_job.target.parts import is_default

    replicas = counted(int(strategy.num_replicas_in_sync), "replica")
    return "no strategy" if is_default(strategy) else f"{type(strategy).__name__} over {replicas}"


def _gpus(tf: Any, strategy: Any) -> dict[str, Any]:
    """Facts of ``JobGpus``."""
    from kdoctor_job.target.parts import is_default

    # Under other systems TensorFlow trains on no GPU of NVIDIA.
    pci = read_devices(Path("/")) if sys.platform == "linux" else PciDevices(devices=())
    return {
        "on_bus": None if isinstance(pci, Unavailable) else len(pci.gpus),
        "listed": len(tf.config.list_physical_devices("GPU")),
        "mask": os.environ.get(VARIABLE),
        "is_distributed": not is_default(strategy),
    }


@contextlib.contextmanager
def progress_lines(found: Mapping[str, Any], quiet_s: float = _QUIET_S) -> Iterator[None]:
    """Write the current phase to stderr after ``quiet_s`` seconds, and whenever the time has doubled."""
    started, done = time.monotonic(), threading.Event()

    def write() -> None:
        elapsed = quiet_s
        while not done.wait(elapsed):
            elapsed = time.monotonic() - started
            sys.stderr.write(f"kdoctor: examining the job for {elapsed:.0f} s so far ({found['phase']})\n")

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@contextlib.contextmanager
def _without_notes(logger: logging.Logger) -> Iterator[None]:
    """Keep TensorFlow's notes about each reduction, and about tracing copies, out of the user's output."""
    level = logger.level
    logger.setLevel(max(level, logging.ERROR))
    try:
        yield
    finally:
        logger.setLevel(level)


def _required(examine: Callable[_P, Preflight]) -> Callable[_P, Preflight]:
    def guard(*arguments: _P.args, **named: _P.kwargs) -> Preflight:
        """Call ``preflight``; print its verdict in one line, or raise if the job should not start.

        The result is a context manager: ``with kdoctor.guard(model, data): model.fit(data)`` also prints the diagnosis
        if the ``fit`` raises a known failure.

        Raises:
            PreflightError: a check at or above ``fail_on`` failed, or is unknown without ``allow_unknown``.
        """
        return examine(*arguments, **named).require()

    guard.__signature__ = inspect.signature(examine)  # type: ignore[attr-defined]  # what help() shows
    return guard


guard = _required(preflight)


def _plan(fail_on: Severity, *, allow_unknown: bool) -> Plan:
    """The checks that judge the user's own model, without a checklist file."""
    catalog = load_catalog()
    checks = catalog.closure(check.id for check in catalog.checks.values() if check.scenario == OWN_MODEL)
    own = [check for check in checks if check.scenario == OWN_MODEL]
    return plan_without_checklist("preflight", "kdoctor.preflight", own, fail_on=fail_on, allow_unknown=allow_unknown)


def _keras() -> str | None:
    keras = sys.modules.get("keras") or sys.modules.get("tf_keras")
    return f"{keras.__name__} {keras.__version__}" if keras else None
