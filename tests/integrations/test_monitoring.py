"""Prometheus, node_exporter and Nagios read what kdoctor writes for them."""

import getpass
import grp
import importlib
import json
import os
import re
import shlex
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from helpers.cases import cases
from helpers.command import captured, environ, make_target
from helpers.integrations import FOLDER, KDOCTOR, needs, read, tool
from helpers.reports import GPU_WORK, TRAININGS, cpu_report, gpu_report, with_text
from kdoctor.report.formats import render

pytestmark = pytest.mark.services

RULES = FOLDER / "prometheus-alerts.yml"
DAY = 86400


def wait_for(condition: Callable[[], Any], seconds: float = 120) -> Any:
    """Wait for a true value of the condition, and return it."""
    end = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < end, f"no answer within {seconds} s"
        time.sleep(0.2)
    return answer


@contextmanager
def running(*command: str | Path, log: Path) -> Iterator[None]:
    with log.open("wb") as file, subprocess.Popen([str(word) for word in command], stdout=file, stderr=file) as process:
        try:
            yield
        finally:
            process.terminate()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def get(address: str) -> str:
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:  # noqa: S310 - this machine
            text: str = answer.read().decode()
            return text
    except OSError:
        return ""


class TestPrometheus:
    pytestmark = needs("promtool")

    @cases(cpu_report(), gpu_report(), with_text(gpu_report(), 'a"b\\c\nd'), ids=["cpu", "gpu", "strange"])
    def test_promtool_accepts_the_metrics(self, report: Any) -> None:
        done = captured(["promtool", "check", "metrics"], input=render(report, "prometheus"))
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    def test_alerts_are_valid_rules_and_documented(self) -> None:
        subprocess.run(["promtool", "check", "rules", str(RULES)], check=True, capture_output=True)
        page = (FOLDER.parent / "integrations.md").read_text(encoding="utf-8")
        for rule in read(RULES)["groups"][0]["rules"]:
            assert f"\n    {rule['expr']}\n" in page

    @cases(
        (1, 5 * DAY, 5 * DAY, set()),
        (0, 5 * DAY, 4 * DAY, {"KdoctorNotPassed"}),
        (0, 5 * DAY, 2 * DAY, {"KdoctorNotPassed", "KdoctorLastPassTooOld"}),
        (1, 2 * DAY, 2 * DAY, {"KdoctorNotRunning", "KdoctorLastPassTooOld"}),
        ids=["passed", "failed", "failing for days", "no run"],
    )
    def test_alerts_fire_for_failed_old_and_missing_runs(
        self, tmp_path: Path, passed: int, run_at: int, passed_at: int, expected: set[str]
    ) -> None:
        """Let promtool evaluate the rules at five days and one hour after 1970."""
        labels = 'checklist="cpu-smoke",instance="node1"'
        series = {
            f'kdoctor_verdict{{{labels},conclusion="pass"}}': passed,
            f'kdoctor_verdict{{{labels},conclusion="fail"}}': 1 - passed,
            f"kdoctor_run_timestamp_seconds{{{labels}}}": run_at,
            f"kdoctor_last_green_timestamp_seconds{{{labels}}}": passed_at,
            f'kdoctor_check_status{{{labels},check="gpu.ecc",severity="error",status="fail"}}': 1 - passed,
        }
        entries = [{"series": name, "values": f"{value}x200"} for name, value in series.items()]
        alerts = [
            {
                "eval_time": "121h",
                "alertname": rule["alert"],
                "exp_alerts": [_expected(rule["alert"], run_at, passed_at)] if rule["alert"] in expected else [],
            }
            for rule in read(RULES)["groups"][0]["rules"]
        ]
        test = {
            "rule_files": [str(RULES)],
            "evaluation_interval": "1h",
            "tests": [{"interval": "1h", "input_series": entries, "alert_rule_test": alerts}],
        }
        (tmp_path / "test.yml").write_text(yaml.safe_dump(test), encoding="utf-8")
        done = captured(["promtool", "test", "rules", str(tmp_path / "test.yml")])
        assert done.returncode == 0, done.stdout + done.stderr


def _expected(alert: str, run_at: int, passed_at: int) -> dict[str, Any]:
    """The alert and its annotations at five days and one hour."""
    now = 5 * DAY + 3600
    labels = {"checklist": "cpu-smoke", "instance": "node1", "severity": "warning"}
    days = {"KdoctorLastPassTooOld": now - passed_at, "KdoctorNotRunning": now - run_at}
    if alert == "KdoctorNotPassed":
        annotations = {"summary": "node1: cpu-smoke did not pass", "description": "gpu.ecc (fail) "}
        return {"exp_labels": {**labels, "conclusion": "pass"}, "exp_annotations": annotations}
    lead = {"KdoctorLastPassTooOld": "passed", "KdoctorNotRunning": "last ran"}[alert]
    annotations = {"summary": f"node1: cpu-smoke {lead} {days[alert] // DAY}d 1h 0m 0s ago"}
    return {"exp_labels": labels, "exp_annotations": annotations}


@contextmanager
def monitored(texts: Path) -> Iterator[str]:
    """Run node_exporter on a folder, and a Prometheus that scrapes it. Yields the address of its interface."""
    folder, ports = texts.parent, (free_port(), free_port())
    scrape = {"job_name": "node", "static_configs": [{"targets": [f"127.0.0.1:{ports[0]}"]}]}
    configuration = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(RULES)],
        "scrape_configs": [scrape],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(configuration), encoding="utf-8")
    exporter = (
        "prometheus-node-exporter", "--collector.disable-defaults", "--collector.textfile",
        f"--collector.textfile.directory={texts}", f"--web.listen-address=127.0.0.1:{ports[0]}",
    )  # fmt: skip
    server = (
        "prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
        f"--web.listen-address=127.0.0.1:{ports[1]}",
    )  # fmt: skip
    with running(*exporter, log=folder / "exporter.log"), running(*server, log=folder / "server.log"):
        yield f"http://127.0.0.1:{ports[1]}/api/v1"


def answer(api: str, query: str) -> list[dict[str, Any]]:
    """The series that answer a query; none if there is no answer."""
    text = get(f"{api}/query?query={urllib.parse.quote(query)}")
    found: list[dict[str, Any]] = json.loads(text)["data"]["result"] if text else []
    return found


class TestNodeExporterAndPrometheus:
    pytestmark = needs("prometheus-node-exporter", "prometheus")

    def test_failed_run_raises_an_alert_with_the_check(self, tmp_path: Path) -> None:
        texts = tmp_path / "texts"
        texts.mkdir()
        done = subprocess.run(
            [
                KDOCTOR, "check", "--checklist", "cpu-smoke", "--no-smoke", "--select", "versions.tensorflow-installed",
                "--python", make_target(tmp_path / "job"), "--output", f"prometheus={texts}/kdoctor.prom",
            ],
            check=False, capture_output=True, env=environ(),
        )  # fmt: skip
        assert done.returncode == 1
        with monitored(texts) as api:
            alerts = wait_for(lambda: json.loads(get(f"{api}/alerts") or '{"data": {"alerts": []}}')["data"]["alerts"])
            (error,) = answer(api, "node_textfile_scrape_error")
        assert error["value"][1] == "0"
        assert [alert["labels"]["alertname"] for alert in alerts] == ["KdoctorNotPassed"]
        assert alerts[0]["annotations"]["description"].split() == ["versions.tensorflow-installed", "(fail)"]

    def test_queries_of_the_dashboard_have_answers_with_the_labels_of_their_legends(self, tmp_path: Path) -> None:
        texts = tmp_path / "texts"
        texts.mkdir()
        report = gpu_report(gpu_work=GPU_WORK, trainings=TRAININGS, last_green_at="2030-01-01T03:04:05Z")
        (texts / "kdoctor.prom").write_text(render(report, "prometheus"), encoding="utf-8")
        dashboard = json.loads((FOLDER / "grafana-dashboard.json").read_text(encoding="utf-8"))
        variables = [one["query"] for one in dashboard["templating"]["list"] if one["type"] == "query"]
        with monitored(texts) as api:
            wait_for(lambda: answer(api, "kdoctor_verdict"))
            for target in (target for panel in dashboard["panels"] for target in panel["targets"]):
                series = answer(api, re.sub(r"\$\w+", ".*", target["expr"]))
                assert series, target["expr"]
                for label in re.findall(r"{{(\w+)}}", target["legendFormat"]):
                    assert all(one["metric"][label] for one in series), (target["expr"], label)
            for variable in variables:
                metric, label = re.findall(r"\w+", variable["query"])[1:]
                assert all(one["metric"][label] for one in answer(api, metric))


class TestGrafana:
    def test_models_of_grafana_read_the_whole_dashboard(self) -> None:
        """Reading drops what the models of Grafana's SDK do not know, so that nothing may be missing afterwards."""
        models = pytest.importorskip("grafana_foundation_sdk.models.dashboard")
        importlib.import_module("grafana_foundation_sdk.cog.plugins").register_default_plugins()
        encoder = importlib.import_module("grafana_foundation_sdk.cog.encoder").JSONEncoder
        dashboard = json.loads((FOLDER / "grafana-dashboard.json").read_text(encoding="utf-8"))
        again = json.loads(encoder(sort_keys=True).encode(models.Dashboard.from_json(dashboard)))
        assert contains(again, dashboard)


def contains(whole: Any, part: Any) -> bool:
    """Whether a document has everything that another one has."""
    if isinstance(part, dict):
        return all(key in whole and contains(whole[key], value) for key, value in part.items())
    if isinstance(part, list):
        return len(whole) == len(part) and all(map(contains, whole, part))
    return bool(whole == part)


NAGIOS = """\
cfg_file={folder}/objects.cfg
log_file={folder}/nagios.log
status_file={folder}/status.dat
object_cache_file={folder}/objects.cache
temp_file={folder}/nagios.tmp
temp_path={folder}
check_result_path={folder}/spool
lock_file={folder}/nagios.lock
command_file={folder}/nagios.cmd
query_socket={folder}/nagios.qh
state_retention_file={folder}/retention.dat
nagios_user={user}
nagios_group={group}
status_update_interval=1
check_result_reaper_frequency=1
service_inter_check_delay_method=n
illegal_macro_output_chars=`~$&|'"<>
"""
OBJECTS = """\
define timeperiod {{
  timeperiod_name always
  alias always
  2000-01-01 - 2099-12-31 / 1 00:00-24:00
}}
define command {{
  command_name kdoctor
  command_line {command}
}}
define contact {{
  contact_name nobody
  host_notifications_enabled 0
  service_notifications_enabled 0
  service_notification_commands kdoctor
  host_notification_commands kdoctor
  service_notification_period always
  host_notification_period always
}}
define host {{
  host_name node1
  address 127.0.0.1
  check_command kdoctor
  max_check_attempts 1
  contacts nobody
}}
define service {{
  host_name node1
  service_description kdoctor
  check_command kdoctor
  max_check_attempts 1
  check_interval 5
  check_period always
  notification_period always
  contacts nobody
}}
"""


class TestNagios:
    @pytest.mark.parametrize(("broken", "state"), [(False, "0"), (True, "2")])
    def test_daemon_stores_state_output_and_performance_data(self, tmp_path: Path, *, broken: bool, state: str) -> None:
        if tool("nagios4") is None:
            pytest.skip("nagios4 is not installed")
        command = shlex.join(plugin(make_target(tmp_path / "job", tensorflow=None if broken else "")))
        names = {"folder": tmp_path, "user": getpass.getuser(), "group": grp.getgrgid(os.getgid()).gr_name}
        (tmp_path / "spool").mkdir()
        (tmp_path / "nagios.cfg").write_text(NAGIOS.format(**names), encoding="utf-8")
        (tmp_path / "objects.cfg").write_text(OBJECTS.format(command=command), encoding="utf-8")
        with running(str(tool("nagios4")), tmp_path / "nagios.cfg", log=tmp_path / "out"):
            service = wait_for(lambda: checked(tmp_path / "status.dat"))
        assert service["current_state"] == state
        expected = "KDOCTOR CRITICAL - NOT READY in " if broken else "KDOCTOR OK - READY in "
        assert service["plugin_output"].startswith(expected)
        assert "error=1;;;0;" in service["performance_data"] or not broken
        assert service["performance_data"].startswith("pass=")

    def test_negate_reads_the_state(self, tmp_path: Path) -> None:
        """``negate`` of the monitoring plugins turns CRITICAL into OK, in the output and the exit code."""
        if tool("negate") is None:
            pytest.skip("negate (monitoring-plugins) is not installed")
        command = [str(tool("negate")), "--substitute", *plugin(make_target(tmp_path / "job"))]
        done = captured(command, env=environ())
        assert done.returncode == 0
        assert done.stdout.startswith("KDOCTOR OK - NOT READY in ")

    @pytest.mark.parametrize("report", [cpu_report(), gpu_report()], ids=["cpu", "gpu"])
    def test_perl_module_parses_the_performance_data(self, report: Any) -> None:
        """Monitoring::Plugin is the reference parser of Nagios plugins."""
        if subprocess.run(["perl", "-MMonitoring::Plugin::Performance", "-e1"], check=False, stderr=-3).returncode:
            pytest.skip("the Perl module Monitoring::Plugin is not installed")
        program = """
            use Monitoring::Plugin::Performance; use JSON::PP;
            my @found = Monitoring::Plugin::Performance->parse_perfstring(join '', <STDIN>);
            print encode_json([map { [$_->label, $_->value, $_->uom] } @found]);"""
        text = render(report, "nagios")
        data = text.partition(" | ")[2]
        done = captured(["perl", "-e", program], check=True, input=data)
        found = {label: (float(value), unit) for label, value, unit in json.loads(done.stdout)}
        assert {mark.value: (float(number), "") for mark, number in report.marks().items()}.items() <= found.items()
        assert _seconds(found["time"]) == pytest.approx(report.duration_s, abs=0.001)
        for item in report.trainings:
            if item.step_s is not None:
                assert _seconds(found[f"{item.scenario}/{item.case} step"]) == pytest.approx(item.step_s, abs=1e-6)


def _seconds(quantity: tuple[float, str]) -> float:
    value, unit = quantity
    assert unit == "s"
    return value


def plugin(target: Path) -> list[str]:
    """The command that a monitoring system runs."""
    options = ("--no-smoke", "--no-history", "--select", "versions.tensorflow-installed", "--format", "nagios")
    return [str(KDOCTOR), "check", "--checklist", "cpu-smoke", "--python", str(target), *options]


def checked(status: Path) -> dict[str, str]:
    """The fields of the service in Nagios' status file, empty until it was checked."""
    text = status.read_text(encoding="utf-8") if status.exists() else ""
    block = text.partition("servicestatus {")[2].partition("}")[0]
    fields = dict(line.strip().partition("=")[::2] for line in block.splitlines() if "=" in line)
    return fields if fields.get("has_been_checked") == "1" else {}
