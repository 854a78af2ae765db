"""Sends a report as OpenTelemetry metrics and logs, with the extra ``otel``.

The metrics are those of :mod:`kdoctor.report.prometheus` with dots: ``kdoctor.verdict``, ``kdoctor.check_status``. Each
finding that counts is a log record, and so is the verdict. Endpoint, headers and resource come from the standard
variables (``OTEL_EXPORTER_OTLP_ENDPOINT``, ``OTEL_RESOURCE_ATTRIBUTES``, ...).
"""

from __future__ import annotations

import datetime as dt
import logging
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from kdoctor import __version__
from kdoctor.engine.report import Conclusion, Report, Result
from kdoctor.errors import UsageError
from kdoctor.model import Severity
from kdoctor.report.phrases import counting
from kdoctor.report.prometheus import Sample, families
from kdoctor.text.sanitize import cleaned

if TYPE_CHECKING:
    from opentelemetry._logs import LoggerProvider
    from opentelemetry.metrics import MeterProvider

_TIMEOUT_MS = 10_000
_SCOPE = "kdoctor"


def send(report: Report) -> str | None:
    """Send a report by OTLP over HTTP. A collector that does not answer does not fail the run.

    Returns:
        Why it was not sent, or None.

    Raises:
        UsageError: the extra is not installed.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.sdk._logs import LoggerProvider
        from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import MetricExportResult, PeriodicExportingMetricReader
    except ImportError as error:
        hint = "Install it: python -m pip install 'keras-doctor[otel]'"
        raise UsageError(f"--otlp needs the extra otel: {error}", hint=hint) from error
    failures: list[str] = []

    def note(result: Any, what: str) -> Any:
        if result.name != "SUCCESS":
            failures.append(f"the collector did not take the {what}")
        return result

    class Metrics(OTLPMetricExporter):
        def export(self, *arguments: Any, **named: Any) -> MetricExportResult:
            return note(super().export(*arguments, **named), "metrics")  # type: ignore[no-any-return]

    class Logs(OTLPLogExporter):
        def export(self, *arguments: Any, **named: Any) -> Any:
            return note(super().export(*arguments, **named), "logs")

    resource = _resource()
    readers = (
        [PeriodicExportingMetricReader(Metrics(), export_interval_millis=float("inf"))] if _is_on("METRICS") else []
    )
    meters = MeterProvider(metric_readers=readers, resource=resource, shutdown_on_exit=False)
    loggers = LoggerProvider(resource=resource, shutdown_on_exit=False)
    if _is_on("LOGS"):
        loggers.add_log_record_processor(BatchLogRecordProcessor(Logs()))
    # The exporters warn of each attempt, and what is left of them is said once.
    logging.getLogger("opentelemetry.exporter").setLevel(logging.CRITICAL)
    try:
        emit(report, meters, loggers)
        meters.force_flush(_TIMEOUT_MS)
        loggers.force_flush(_TIMEOUT_MS)
    except Exception as error:  # noqa: BLE001 - the network may fail in any way
        failures.append(f"{type(error).__name__}: {error}")
    finally:
        loggers.shutdown()
        meters.shutdown()
    return f"the report was not sent by OTLP: {failures[0]}" if failures else None


def _is_on(kind: str) -> bool:
    """Whether to send metrics or logs. Some receivers take one of them only."""
    return os.environ.get(f"OTEL_{kind}_EXPORTER", "").strip().lower() != "none"


def _resource() -> Any:
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource

    own = Resource({"service.name": "kdoctor", "service.version": __version__})
    return own.merge(OTELResourceDetector().detect())


def emit(report: Report, meters: MeterProvider, loggers: LoggerProvider) -> None:
    """Record a report with these providers."""
    from opentelemetry.metrics import CallbackOptions, Observation

    report = cleaned(report)
    common = {"checklist": report.checklist.name}
    meter = meters.get_meter(_SCOPE, __version__)

    def observed(samples: Sequence[Sample]) -> Any:
        def callback(_: CallbackOptions) -> Iterable[Observation]:
            return [Observation(float(value), {**common, **labels}) for labels, value in samples]

        return callback

    for name, text, samples in families(report):
        if samples:
            meter.create_observable_gauge(f"kdoctor.{name}", [observed(samples)], description=text)
    _log(report, loggers, common)


def _log(report: Report, loggers: LoggerProvider, common: dict[str, str]) -> None:
    from opentelemetry._logs import LogRecord, SeverityNumber

    logger = loggers.get_logger(_SCOPE, __version__)
    numbers = {
        Severity.ERROR: SeverityNumber.ERROR,
        Severity.WARNING: SeverityNumber.WARN,
        Severity.INFO: SeverityNumber.INFO,
    }

    def write(body: str, severity: Severity, event: str, **attributes: Any) -> None:
        now = int(dt.datetime.now(dt.timezone.utc).timestamp() * 1e9)
        record = LogRecord(
            timestamp=now,
            observed_timestamp=now,
            severity_number=numbers[severity],
            severity_text=numbers[severity].name,
            body=body,
            attributes={**common, **attributes},
            event_name=f"kdoctor.{event}",
        )
        logger.emit(record)

    for result in report.results:
        for body, attributes in _findings(result):
            write(body, result.severity, "finding", **attributes)
    verdict = report.verdict
    severity = Severity.ERROR if verdict.conclusion is Conclusion.FAIL else Severity.INFO
    severity = Severity.WARNING if verdict.conclusion is Conclusion.UNKNOWN or verdict.warned else severity
    write(verdict.reason, severity, "verdict", conclusion=verdict.conclusion.value, exit_code=verdict.exit_code)


def _findings(result: Result) -> Iterable[tuple[str, dict[str, str]]]:
    for judged in counting(result):
        finding = judged.finding
        yield (
            f"{finding.subject}: {finding.observed}",
            {
                "check": result.id,
                "subject": finding.subject,
                "expected": finding.expected,
                "fix": finding.remedy.summary,
            },
        )
