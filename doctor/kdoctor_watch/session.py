"""One watched training: what was seen, what is judged, and the report at its end."""

import datetime as dt
import importlib
import os
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kdoctor.engine.judge import judge
from kdoctor.engine.report import Report
from kdoctor.facts import Facts
from kdoctor.history.location import is_off
from kdoctor.history.record import keep
from kdoctor.lock.store import read_lock
from kdoctor.model import Severity
from kdoctor.output import write_atomically
from kdoctor.report.formats import render
from kdoctor.run.assemble import build_report
from kdoctor.run.session import Collected
from kdoctor.text.lists import counted
from kdoctor.version import __version__
from kdoctor_watch.canary import Canary
from kdoctor_watch.companion import Companion
from kdoctor_watch.facts import Watched, WatchedValues
from kdoctor_watch.publish import LOGGER, Publisher, WatchFinding, brief, tag_run
from kdoctor_watch.recorder import Recorder
from kdoctor_watch.settings import Settings, plan_of
from kdoctor_watch.variables import Input, Variables, note_gradients


class Session:
    """A training that is being watched. The hooks are called by the thread that trains."""

    def __init__(self, settings: Settings, model: Any, data: Input, strategy: Any) -> None:
        self._settings = settings
        self._lock_digest = read_lock(Path(settings.lock)).digest if settings.lock is not None else None
        self._started_at = dt.datetime.now(dt.timezone.utc)
        self.recorder = Recorder(settings.stall_s)
        self._variables = Variables(model, self.recorder, settings.every)
        self._input = data
        self._gradients = 0
        self._bad = 0
        """How many values are not finite and were judged."""
        self._plan = plan_of(settings.limits)
        self._publisher = Publisher(settings.on_finding, settings.tensorboard)
        self._known: set[tuple[str, str]] = set()
        self._lock = threading.RLock()
        self.failed = False
        """Whether a check of severity error has failed."""
        self._is_jax = hasattr(model, "jax_state_sync")
        self._devices, self._bus_ids, self._name = _describe(strategy, is_jax=self._is_jax)
        on_gpus = any("GPU:" in device for device in self._devices)
        self._companion = Companion(
            self._judge, interval_s=settings.interval_s, on_gpus=on_gpus, device_memory=self._device_memory
        )
        saves = None if settings.saves is None else Path(settings.saves)
        self._canary = Canary(settings.canary_s, self._devices, is_jax=self._is_jax, saves=saves)
        data.start()
        tag_run(self._tags())
        if self._canary.start():
            self._judge()

    def begin(self, step: int) -> None:
        """Before a step that begins a block. The others only pass ``recorder.goes_on``."""
        self.recorder.end(step)
        self._input.before(step)
        if step >= self._variables.due:
            self.look(step - 1)
        if self._canary.is_due and self._canary.look(step - 1):
            self._judge()
        self.read()
        self.recorder.begin(step, min(self._variables.due, self._input.due))

    def take(self, step: int, logs: Mapping[str, Any], gradients: Mapping[str, Any]) -> None:
        """After a step of a custom loop: what it reports, and its gradients."""
        self.recorder.report(step, logs)
        if gradients:
            try:
                note_gradients(self.recorder, step, gradients)
                self._gradients += 1
            except Exception as error:  # noqa: BLE001 - looking must not end the training
                self._publisher.warn(f"gradients could not be read: {brief(error)}")
        if gradients or self._settings.on_error == "stop":
            self.read()

    def read(self) -> None:
        """Read at once what the steps reported, and not at the end of a block."""
        self.recorder.read_reports()
        if len(self.recorder.bad) > self._bad:
            self._judge()

    def pause(self) -> None:
        """Between epochs, and before validation."""
        self.recorder.end()
        self.read()

    def look(self, done: int) -> None:
        """Compare the replicas after step ``done``."""
        known = self._problems()
        self._variables.look(done)
        if self._problems() > known or self.recorder.bad:
            self._judge()

    def _problems(self) -> int:
        return len(self._variables.facts().differences)

    def facts(self) -> Facts:
        """What was seen until now."""
        recorder = self.recorder
        return {
            **self._companion.facts(),
            Watched: Watched(
                seconds=time.perf_counter() - recorder.started,
                steps=recorder.facts(),
                values=WatchedValues(
                    logs=tuple(recorder.log_names),
                    steps=recorder.steps_read,
                    gradients=self._gradients,
                    variables=self._variables.number,
                    not_finite=tuple(recorder.bad.values()),
                ),
                replicas=self._variables.facts(),
                input=self._input.facts(),
                bits=self._canary.facts(),
                devices=self._devices or self._variables.devices,
                bus_ids=self._bus_ids,
                memory=self._companion.memory,
                log_unavailable=self._companion.log_unavailable,
            ),
        }

    def _judge(self) -> None:
        """Hand on what is wrong now and was not before."""
        self.recorder.look_for_stall()
        self._bad = len(self.recorder.bad)
        results = judge(self._plan.checks, self.facts(), self._plan.rules)
        with self._lock:
            for result in results:
                for judged in result.findings:
                    key = (result.id, judged.finding.subject)
                    if key in self._known:
                        continue
                    self._known.add(key)
                    if result.severity is Severity.ERROR:
                        self.failed = True
                        self.recorder.end_block_soon()
                    found = WatchFinding(
                        check=result.id, severity=result.severity, finding=judged.finding, step=self.recorder.step
                    )
                    self._publisher.publish(found)
            if self._settings.tensorboard:
                step_s = self.recorder.step_s
                step_ms = None if step_s is None else 1000 * step_s
                self._publisher.numbers(
                    {"step_ms": step_ms, "findings": float(len(self._known))}, max(0, self.recorder.step)
                )

    def _device_memory(self) -> Mapping[str, int]:
        if not any("GPU:" in device for device in self._devices):
            return {}
        if self._is_jax:
            return dict(importlib.import_module("kdoctor_watch.target.jax_state").device_memory())
        return dict(importlib.import_module("kdoctor_watch.target.tensorflow_state").device_memory(self._devices))

    def close(self, *, interrupted: bool = False) -> Report:
        """End the watching, and report."""
        self.recorder.end()
        if self.recorder.step >= 0 and not interrupted:
            self.look(self.recorder.step)
            if self._canary.look(self.recorder.step, last=True):
                self._judge()
        self._companion.tick()
        self._companion.close()
        report = self._report(interrupted=interrupted)
        self._keep(report)
        self._publisher.close()
        tag_run({**self._tags(), "kdoctor.verdict": report.verdict.conclusion.value})
        return report

    def _report(self, *, interrupted: bool) -> Report:
        collected = Collected(
            facts=self.facts(),
            target=f"{sys.executable}, {self._name}",
            started_at=self._started_at,
            duration_s=time.perf_counter() - self.recorder.started,
            interrupted=interrupted,
        )
        return build_report(collected, self._plan)

    def _keep(self, report: Report) -> None:
        try:
            if self._settings.report is not None:
                path = Path(self._settings.report)
                path.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(path, render(report, "json"))
        except Exception as error:  # noqa: BLE001 - a full disk must not end the job
            LOGGER.warning("the report was not written: %s", brief(error))
        if self._settings.history and not is_off(os.environ):
            failure = keep(report, "", os.environ)
            if failure:
                LOGGER.warning("%s", failure)

    def _tags(self) -> dict[str, str]:
        """The environment, and the digest of the lock, if one is named."""
        tags = {
            "kdoctor.version": __version__,
            "kdoctor.python": ".".join(map(str, sys.version_info[:3])),
            "kdoctor.devices": self._name,
        }
        for name in ("tensorflow", "keras", "tf_keras", "jax"):
            version = getattr(sys.modules.get(name), "__version__", None)
            if version:
                tags[f"kdoctor.{name}"] = str(version)
        if self._lock_digest is not None:
            tags["kdoctor.lock"] = self._lock_digest
        return tags


def _describe(strategy: Any, *, is_jax: bool) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """The devices of the replicas, the addresses of their GPUs, and a description of both."""
    devices: tuple[str, ...]
    if is_jax:
        devices = tuple(importlib.import_module("kdoctor_watch.target.jax_state").local_devices())
        name = f"JAX on {counted(len(devices), 'device')}"
    elif strategy is None:
        return (), (), "no distribution strategy"
    else:
        devices, name = _placed(strategy)
    numbers = [device.rpartition(":")[2] for device in devices if "GPU:" in device]
    if not numbers:
        return devices, (), name
    addresses = importlib.import_module("kdoctor_target.inspect.cuda").gpu_addresses()
    known = [addresses[int(number)] for number in numbers if number.isdigit() and int(number) < len(addresses)]
    return devices, tuple(address for address in known if address), name


def _placed(strategy: Any) -> tuple[tuple[str, ...], str]:
    try:
        devices = tuple(str(device) for device in strategy.extended.worker_devices)
    except RuntimeError:
        # TensorFlow's default strategy, outside of every scope, names none. Operations go to the first GPU.
        gpus = sys.modules["tensorflow"].config.list_logical_devices("GPU")
        return tuple(str(gpu.name) for gpu in gpus[:1]), "no distribution strategy"
    return devices, f"{type(strategy).__name__} over {counted(int(strategy.num_replicas_in_sync), 'replica')}"
