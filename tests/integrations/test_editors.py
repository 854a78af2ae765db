"""What editors and dashboards read: the tasks for VS Code, and the dashboard for Grafana."""

import contextlib
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from helpers.command import SCRIPT, environ
from helpers.integrations import FOLDER, KDOCTOR
from helpers.reports import gpu_report
from kdoctor.report.prometheus import families
from kdoctor_lint.engine import lint

TASKS = json.loads((FOLDER / "vscode-tasks.json").read_text(encoding="utf-8"))["tasks"]


def run_task(task: dict[str, Any], folder: Path) -> str:
    """What a command prints in the terminal of VS Code, which may be narrow."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    settings = environ(TERM="xterm-256color", **task["options"]["env"])
    command = [str(KDOCTOR), *(one.replace("${relativeFile}", "train.py") for one in task["args"])]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, cwd=folder, env=settings) as process:
        os.close(theirs)
        text = b""
        with contextlib.suppress(OSError):  # the end of a pseudo-terminal
            while part := os.read(ours, 4096):
                text += part
    os.close(ours)
    assert process.returncode == 1
    return text.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("task", [task for task in TASKS if task["args"][0] == "lint"], ids=lambda task: task["label"])
def test_problem_matcher_reads_the_output_of_lint(task: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT, encoding="utf-8")
    read = problems(task["problemMatcher"]["pattern"], run_task(task, tmp_path))
    assert [problem.pop("message") for problem in read] == [
        finding.message for finding in lint([str(tmp_path / "train.py")]).findings
    ]
    assert read == [{"file": "train.py", "line": "3", "column": "9", "severity": "error", "code": "KD101"}]


def problems(patterns: list[dict[str, Any]], text: str) -> list[dict[str, str]]:
    """What VS Code reads: each line matches the next pattern, from the first one on."""
    found: list[dict[str, str]] = []
    lines = text.splitlines()
    for line, following in pairwise(lines):
        first, second = (
            re.search(pattern["regexp"], one) for pattern, one in zip(patterns, (line, following), strict=True)
        )
        if first and second:
            places = {key: value for key, value in patterns[0].items() if key != "regexp"}
            read = {key: first[place] for key, place in places.items()}
            found.append({**read, "message": second[patterns[1]["message"]]})
    return found


def test_dashboard_uses_metrics_that_kdoctor_writes() -> None:
    dashboard = json.loads((FOLDER / "grafana-dashboard.json").read_text(encoding="utf-8"))
    written = {f"kdoctor_{name}": samples for name, _, samples in families(gpu_report())}
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert len(queries) >= 10
    for query in queries:
        (metric,) = set(re.findall(r"\bkdoctor_\w+", query))
        assert metric in written
        labels = {"instance", "checklist"} | {label for names, _ in written[metric] for label in names}
        used = set(re.findall(r"(\w+)=~?\"", query))
        assert used <= labels or not written[metric]
    variables = {variable["name"] for variable in dashboard["templating"]["list"]}
    assert {name for query in queries for name in re.findall(r"\$(\w+)", query)} <= variables


def test_panels_of_the_dashboard_do_not_overlap() -> None:
    dashboard = json.loads((FOLDER / "grafana-dashboard.json").read_text(encoding="utf-8"))
    cells: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        own = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not own & cells
        cells |= own
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
