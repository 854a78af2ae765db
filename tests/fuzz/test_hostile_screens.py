"""Every command shows hostile text without obeying it: screens, error messages and documents."""

import copy
import json
import re
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from helpers.hostile import HOSTILE
from kdoctor.cli import main
from kdoctor.text.sanitize import is_printable
from kdoctor_fleet.formats import FORMATS as FLEET_FORMATS

TEXT = " ".join(text for name, text in HOSTILE.items() if name not in ("long", "null", "lone surrogate"))
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
COMMAND = re.compile(r"^\s*(::(error|set-output|group|warning)|##(\[|vso))", re.MULTILINE)
LOG = (
    f"Traceback (most recent call last):\n{TEXT}\nValueError: {TEXT}\nNCCL WARN {TEXT}\ntensorflow.python: OOM {TEXT}\n"
)
CHECKLIST = """\
schema: kdoctor/checklist/v1
name: job
version: 1
owner: %s
extends: cpu-smoke
waivers:
  - {check: host.memory, subject: %s, reason: %s, owner: %s, expires: 2099-01-01}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A hostile machine, checklist and log, and a history with two runs of that machine."""
    made = tmp_path_factory.mktemp("hostile")
    found: dict[str, Any] = json.loads(resources.files("kdoctor.testing").joinpath("h100-node.json").read_text())
    facts = found["facts"]
    facts["gpus"]["devices"] = facts["gpus"]["devices"][:2]
    facts["gpus"]["pairs"] = facts["gpus"]["pairs"][:1]
    for device in facts["gpus"]["devices"]:
        device["name"] += TEXT
    facts["host"]["os"] = TEXT
    facts["target"]["executable"] += TEXT
    (made / "machine.json").write_text(json.dumps(found))
    other = copy.deepcopy(found)
    other["facts"]["gpus"]["devices"][0]["name"] = "NVIDIA L4"
    (made / "other.json").write_text(json.dumps(other))
    (made / "job.log").write_text(LOG)
    " ".join(TEXT.split())
    for name, text in (("old", "ada"), ("new", json.dumps(TEXT))):
        (made / f"{name}.yaml").write_text(CHECKLIST % (text, text, text, text))
    return made


def check_harmless(text: str, arguments: Sequence[str]) -> None:
    plain = COLOUR.sub("", text)
    assert is_printable(plain), arguments
    assert not COMMAND.search(plain), (arguments, COMMAND.findall(plain))


MACHINE = ("--snapshot", "FOLDER/machine.json")
SCREENS = (
    ("check", *MACHINE, "--no-smoke"),
    ("check", "--snapshot", "FOLDER/other.json", "--no-smoke", "-v"),
    *(("topology", *MACHINE, "-f", name) for name in ("terminal", "json")),
    *(("rollback", *MACHINE, "--to", "last-passing", "-f", name) for name in ("text", "json")),
    ("checklist", "init", "FOLDER/drafted.yaml", *MACHINE, "--owner", TEXT),
    ("checklist", "show", "FOLDER/new.yaml"),
    *(("checklist", "diff", "FOLDER/old.yaml", "FOLDER/new.yaml", "-f", name) for name in ("terminal", "json")),
    ("checklist", "diff", "FOLDER/old.yaml", "FOLDER/new.yaml", "-f", "markdown"),
    *(("diagnose", "FOLDER/job.log", "-f", name) for name in ("terminal", "json", "markdown", "html")),
    ("history", "list"),
    ("history", "show", "1"),
    ("history", "diff", "1", "2"),
    ("history", "export"),
    ("explain", TEXT),
    *(("lint", TEXT, "-f", name) for name in ("terminal", "json", "github", "sarif")),
    ("matrix", "--python", TEXT),
    ("matrix", "--gpu", TEXT),
    ("matrix", "--driver", TEXT),
    ("matrix", "--tensorflow", TEXT),
    ("check", "--checklist", TEXT),
    ("check", "--python", TEXT),
    ("check", "--select", TEXT),
    ("check", "--output", TEXT),
    ("check", "--plugin", TEXT),
    ("check", "--snapshot", TEXT),
    ("smoke", TEXT),
    ("topology", "--snapshot", TEXT),
    ("rollback", "--to", TEXT),
    ("diagnose", TEXT),
    ("fleet", "merge", TEXT),
    ("fleet", "diff", TEXT, TEXT),
    ("history", "show", TEXT),
    ("schema", TEXT),
    *(("fleet", "merge", "FOLDER/machine.json", "-f", name) for name in FLEET_FORMATS),
    ("fleet", "merge", "FOLDER/machine.json", "--expect", TEXT),
    ("fleet", "merge", "FOLDER/machine.json", "--min-healthy", TEXT),
    ("fleet", "merge", "FOLDER/machine.json", "--engine", TEXT),
    ("fleet", "manifest", "--image", TEXT),
    ("fleet", "manifest", "--image", "x", "--kind", TEXT),
    ("fleet", "run", "--engine", TEXT),
    ("fleet", "run", "--engine", "ssh", "--nodes", TEXT),
    ("explain", "--reproduce", TEXT),
    ("matrix", "add", TEXT),
    (TEXT,),
    (f"--{TEXT}",),
    ("check", f"--{TEXT}"),
    ("list", TEXT, TEXT),
    ("check", "--replicas", TEXT),
    ("check", "--timeout", TEXT),
    ("mcp", TEXT),
)  # fmt: skip


def test_screens_and_errors_do_not_obey(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    record_property: Callable[[str, object], None],
) -> None:
    record_property("hostile strings shown", ("commands", len(SCREENS)))
    monkeypatch.setenv("KDOCTOR_HISTORY", str(folder / "history.db"))
    monkeypatch.delenv("KDOCTOR_NO_HISTORY", raising=False)
    for arguments in SCREENS:
        words = [argument.replace("FOLDER", str(folder)) for argument in arguments]
        monkeypatch.setattr("sys.argv", ["kdoctor", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code in (None, 0, 1, 2, 3), arguments
        written = capsys.readouterr()
        check_harmless(written.out, arguments)
        check_harmless(written.err, arguments)
    drafted = (folder / "drafted.yaml").read_text()
    assert is_printable(drafted)
    assert "\nwaivers:" not in drafted
