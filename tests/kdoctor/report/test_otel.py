"""Reports as OpenTelemetry metrics and logs, read back with the SDK's in-memory exporters and a real HTTP receiver."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry._logs import SeverityNumber
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from helpers.reports import gpu_report
from kdoctor.model import Severity
from kdoctor.report.otel import emit, send
from kdoctor.report.phrases import counting
from kdoctor.report.prometheus import families

REPORT = gpu_report()


def test_metrics_are_those_of_prometheus() -> None:
    reader = InMemoryMetricReader()
    emit(REPORT, MeterProvider(metric_readers=[reader], shutdown_on_exit=False), LoggerProvider(shutdown_on_exit=False))
    data = reader.get_metrics_data()
    assert data is not None
    metrics = {metric.name: metric for metric in data.resource_metrics[0].scope_metrics[0].metrics}
    expected = {f"kdoctor.{name}": samples for name, _, samples in families(REPORT) if samples}
    assert metrics.keys() == expected.keys()
    for name, samples in expected.items():
        points: Any = metrics[name].data.data_points
        found = sorted((sorted(point.attributes.items()), point.value) for point in points)
        wanted = sorted(
            (sorted({"checklist": REPORT.checklist.name, **labels}.items()), float(value)) for labels, value in samples
        )
        assert str(found) == str(wanted)  # NaN is not equal to itself


def test_findings_and_verdict_are_log_records() -> None:
    exporter = InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]
    loggers = LoggerProvider(shutdown_on_exit=False)
    loggers.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    emit(REPORT, MeterProvider(shutdown_on_exit=False), loggers)
    records = [item.log_record for item in exporter.get_finished_logs()]
    findings = [(result, judged) for result in REPORT.results for judged in counting(result)]
    assert len(records) == len(findings) + 1
    for record, (result, judged) in zip(records, findings, strict=False):
        assert record.attributes is not None
        assert (record.attributes["check"], record.attributes["subject"]) == (result.id, judged.finding.subject)
        assert (record.severity_number is SeverityNumber.ERROR) == (result.severity is Severity.ERROR)
    verdict = records[-1]
    assert verdict.attributes is not None
    assert verdict.attributes["conclusion"] == REPORT.verdict.conclusion.value


@pytest.fixture
def collector() -> Iterator[tuple[str, dict[str, bytes]]]:
    """An HTTP server that keeps what it receives."""
    received: dict[str, bytes] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(404 if self.path.startswith("/metrics-only/v1/logs") else 200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", received
    server.shutdown()
    server.server_close()


def test_report_is_sent_by_otlp(collector: tuple[str, dict[str, bytes]], monkeypatch: pytest.MonkeyPatch) -> None:
    address, received = collector
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "host.name=node7")
    assert send(REPORT) is None
    metrics = ExportMetricsServiceRequest.FromString(received["/v1/metrics"])
    attributes = {item.key: item.value.string_value for item in metrics.resource_metrics[0].resource.attributes}
    assert (attributes["service.name"], attributes["host.name"]) == ("kdoctor", "node7")
    names = {metric.name for metric in metrics.resource_metrics[0].scope_metrics[0].metrics}
    assert "kdoctor.verdict" in names
    logs = ExportLogsServiceRequest.FromString(received["/v1/logs"])
    assert len(logs.resource_logs[0].scope_logs[0].log_records) >= 1


def test_missing_collector_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    assert "OTLP" in (send(REPORT) or "")


@pytest.mark.parametrize("kind", ["logs", "metrics"])
def test_refused_part_is_a_note_and_can_be_turned_off(
    collector: tuple[str, dict[str, bytes]],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    kind: str,
) -> None:
    address, received = collector
    monkeypatch.setenv(f"OTEL_EXPORTER_OTLP_{kind.upper()}_ENDPOINT", f"{address}/metrics-only/v1/logs")
    other = {"logs": "metrics", "metrics": "logs"}[kind]
    monkeypatch.setenv(f"OTEL_EXPORTER_OTLP_{other.upper()}_ENDPOINT", f"{address}/v1/{other}")
    assert f"did not take the {kind}" in (send(REPORT) or "")
    assert capfd.readouterr().err == ""
    received.clear()
    monkeypatch.setenv(f"OTEL_{kind.upper()}_EXPORTER", "none")
    assert send(REPORT) is None
    assert list(received) == [f"/v1/{other}"]
