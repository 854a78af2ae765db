"""Formats for mail, monitoring and logs, as cron and a monitoring system receive them."""

import json
import os
import subprocess
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from helpers.command import KDOCTOR, environ, kdoctor, make_target

# Tests of faults leave killed programs in the kernel log.
QUICK = ("check", "--checklist", "cpu-smoke", "--no-smoke", "--skip", "host.killed-programs")


def test_quiet_is_one_line_on_stdout_and_nothing_on_stderr() -> None:
    done = kdoctor(*QUICK, "--quiet")
    assert done.returncode == 0
    assert done.stdout.startswith("kdoctor READY in ")
    assert done.stdout.count("\n") == 1
    assert not done.stderr


def test_quiet_keeps_the_named_format() -> None:
    assert json.loads(kdoctor(*QUICK, "--quiet", "--format", "json").stdout)["verdict"] == "pass"


def test_nagios_format_uses_service_exit_codes(tmp_path: Path) -> None:
    warned = kdoctor(*QUICK, "--format", "nagios")
    assert (warned.returncode, warned.stdout.startswith("KDOCTOR WARNING - READY")) == (1, True)
    good = kdoctor(*QUICK, "--format", "nagios", "--skip", "versions.keras-features")
    assert (good.returncode, good.stdout.startswith("KDOCTOR OK - READY")) == (0, True)
    bad = kdoctor(*QUICK, "--format", "nagios", "--python", make_target(tmp_path / "empty"))
    assert (bad.returncode, bad.stdout.startswith("KDOCTOR CRITICAL - NOT READY")) == (2, True)


def test_nagios_format_reports_usage_error_as_unknown() -> None:
    """Exit code 2 would say CRITICAL, and a monitoring system shows stdout only."""
    for form in (("--format", "nagios"), ("--output", "nagios=-")):
        done = kdoctor("check", "--checklist", "nosuch", *form)
        assert done.returncode == 3
        assert done.stdout.startswith("KDOCTOR UNKNOWN - kdoctor: ")
        assert done.stdout.count("\n") == 1


def test_prometheus_file_is_replaced_atomically(tmp_path: Path) -> None:
    place = tmp_path / "kdoctor.prom"
    place.write_text("old", encoding="utf-8")
    kdoctor("check", "--checklist", "nosuch", "--output", f"prometheus={place}")
    assert place.read_text(encoding="utf-8") == "old"
    assert kdoctor(*QUICK, "--quiet", "--output", f"prometheus={place}").returncode == 0
    names = {family.name for family in text_string_to_metric_families(place.read_text(encoding="utf-8"))}
    assert {"kdoctor_verdict", "kdoctor_check_status", "kdoctor_run_timestamp_seconds"} <= names
    # node_exporter reads every *.prom file in the folder.
    assert os.listdir(tmp_path) == ["kdoctor.prom"]  # noqa: PTH208 - names, hidden ones too


def test_json_log_has_one_object_per_line() -> None:
    done = kdoctor(*QUICK, "--quiet", "--log-format", "json")
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert all({"time", "level", "event"} <= set(line) for line in lines)
    assert lines[0]["event"] == "progress"
    assert lines[-1] | {"time": ""} == {
        "time": "",
        "level": "info",
        "event": "verdict",
        "verdict": "pass",
        "exit_code": 0,
        "reason": lines[-1]["reason"],
        "message": done.stdout.rstrip("\n"),
    }


def test_json_log_contains_usage_error() -> None:
    done = kdoctor("check", "--checklist", "nosuch", "--log-format", "json")
    line = json.loads(done.stderr)
    assert (done.returncode, line["level"], line["event"]) == (2, "error", "error")
    assert "nosuch" in line["message"]


def test_full_disk_is_an_error_and_closed_stdout_is_not() -> None:
    command = [*KDOCTOR, *QUICK]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, check=False, stdout=full, stderr=subprocess.PIPE, text=True, env=environ())
    assert done.returncode == 2
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    closed = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *command], check=False, capture_output=True, env=environ()
    )
    assert (closed.returncode, closed.stderr) == (0, b"")


def test_file_that_cannot_be_written_loses_no_other_report(tmp_path: Path) -> None:
    done = kdoctor(*QUICK, "-o", "json=/dev/full", "-o", f"html={tmp_path / 'report.html'}")
    assert (done.returncode, "cannot write /dev/full" in done.stderr) == (2, True)
    assert "READY in" in done.stdout
    assert (tmp_path / "report.html").exists()


def test_written_files_are_named_on_stderr_unless_quiet(tmp_path: Path) -> None:
    page, facts = tmp_path / "report.html", tmp_path / "facts.json"
    files = ("-o", f"html={page}", "--save-snapshot", facts)
    assert sorted(kdoctor(*QUICK, *files).stderr.splitlines()) == [f"Wrote {facts}", f"Wrote {page}"]
    assert not kdoctor(*QUICK, *files, "--quiet").stderr
