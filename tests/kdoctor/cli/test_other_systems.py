"""Commands on a simulated macOS and Windows: no ``/proc``, ``os.fork``, ``fcntl`` and the like (helpers.other_system).

.github/workflows/systems.yml runs the real ones.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from helpers.checklist_texts import untrained
from helpers.command import SCRIPT, environ

COMMANDS = {
    ("--version",): 0,
    ("list",): 0,
    ("explain", "gpu.free"): 0,
    ("matrix", "--driver", "550.54", "--gpu", "A100", "--python", "3.11"): 0,
    ("check", "--checklist", "cpu-smoke", "--no-smoke", "--select", "host", "--output", "json=report.json"): 0,
    ("check", "--checklist", "multi-gpu-keras", "--no-smoke", "--output", "json=gpus.json"): 1,
    ("snapshot", "--no-smoke", "--output", "machine.json"): 0,
    ("check", "--snapshot", "machine.json", "--checklist", "cpu-smoke", "--no-smoke", "--select", "host"): 0,
    ("fleet", "merge", "report.json"): 3,  # of one family
    ("diagnose", "--format", "json", "--output", "json=diagnosis.json", "train.log"): 0,
    ("lint", "train.py"): 1,
    ("checklist", "init", "mine.yaml"): 0,
    ("checklist", "validate", "mine.yaml"): 0,
    ("checklist", "record", "small.yaml"): 0,
    ("checklist", "diff", "cpu-smoke", "mine.yaml"): 0,
    ("history", "list"): 0,
    ("topology",): 2,
    ("lint", "C:\\job\\train.py"): 2,
}
LOG = """Traceback (most recent call last):
  File "C:\\job\\train.py", line 31, in <module>
    model.fit(x, y)
ValueError: OOM when allocating tensor with shape[64,1000] and type float
"""


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_commands_run_and_report_what_they_cannot_examine(system: str, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(LOG, encoding="utf-8")
    (tmp_path / "train.py").write_text(SCRIPT, encoding="utf-8")
    (tmp_path / "small.yaml").write_text(untrained("host.disk"), encoding="utf-8")
    root = Path(__file__).parents[3]
    paths = ":".join(str(root / part) for part in ("doctor", "checks", "checklists", "tests"))
    done = subprocess.run(
        [sys.executable, "-m", "helpers.other_system", system, json.dumps([list(command) for command in COMMANDS])],
        check=False, capture_output=True, text=True, cwd=tmp_path, timeout=300,
        env=environ(PYTHONPATH=paths, LOGNAME="", USER="", LNAME="", USERNAME=""),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    answers = dict(zip(COMMANDS, json.loads(done.stdout), strict=True))
    codes = {command: answer["code"] for command, answer in answers.items()}
    assert codes == COMMANDS, [answer for command, answer in answers.items() if codes[command] != COMMANDS[command]]
    assert not [answer["errors"] for answer in answers.values() if "Traceback" in answer["errors"]]
    gpus = [result for result in read(tmp_path / "gpus.json")["results"] if result["family"] in {"gpu", "driver"}]
    assert {result["status"] for result in gpus} <= {"skip", "unknown", "fail"}
    causes = read(tmp_path / "diagnosis.json")["causes"]
    assert causes[0]["id"] == "gpu_out_of_memory"


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found
