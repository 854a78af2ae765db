"""A case reports how it ended, whatever the job's code has done to the process."""

import json
import subprocess
import sys

from helpers.cases import cases

_CASE = """
import os, sys
from pathlib import Path
from kdoctor_target.runner.case import Case

case = Case(os.fdopen(os.dup(1), "w"), "cpu", 2, stem=Path("x"), deadline_s=9.0)
def work():
{work}
case.{way}(work)
"""


@cases(
    ("pass", "trained"),
    ("sys.stdout.close(); sys.stderr.close()", "trained"),
    ("sys.stderr.close(); 1 / 0", "raised"),
    ("sys.stdout = sys.stderr = None; sys.exit(1)", "raised"),
)
def test_end_is_reported_with_closed_streams(work: str, outcome: str) -> None:
    for way in ("conclude", "go_on"):
        program = _CASE.format(work=f"    {work}", way=way)
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=20, check=True)
        *_, last = map(json.loads, done.stdout.splitlines())
        assert last["end"]["outcome"] == outcome
