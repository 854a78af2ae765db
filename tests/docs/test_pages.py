"""The generated pages: the manual page is valid, and the page about hardware shows its records."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest
from docs.generator.commands import man_page
from docs.generator.hardware import measured_hardware_page
from docs.generator.pages import ROOT, written_pages

from helpers.command import captured
from kdoctor.catalog.load import load_catalog


@pytest.fixture(scope="module")
def man(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("man") / "kdoctor.1"
    path.write_text(man_page(), encoding="utf-8")
    return path


@pytest.mark.skipif(not shutil.which("man"), reason="needs man")
def test_manual_page_renders_without_warnings(man: Path) -> None:
    done = captured(
        ["man", "--warnings", "--local-file", man],
        check=True,
        env={"MANWIDTH": "80", "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
    )
    assert not done.stderr
    shown = re.sub(r".\x08", "", done.stdout)
    assert "--gpus N" in shown
    assert [line for line in shown.splitlines() if len(line) > 80] == []


def test_manual_page_has_every_command_and_is_valid_roff(man: Path) -> None:
    text = man.read_text(encoding="utf-8")
    for command in ("check", "smoke", "explain", "checklist record", "history list"):
        assert f".SS kdoctor {command}\n" in text
    requests = {line.split()[0] for line in text.splitlines() if line.startswith(".")}
    assert requests <= {'.\\"', ".TH", ".SH", ".SS", ".PP", ".TP", ".B", ".BR", ".I", ".RI", ".nf", ".fi"}


RECORD = {
    "schema": "kdoctor/measured-hardware/v1",
    "rehearsal": False,
    "date": "2026-12-01",
    "kdoctor": "0.4.0",
    "seconds": 212.4,
    "machine": {"GPUs": "0: NVIDIA L4", "driver": "570.158.01"},
    "tests": [
        {"test": "test_driver.py::test_a", "outcome": "passed", "seconds": 1.0, "reason": ""},
        {"test": "test_machine.py::test_b", "outcome": "skipped", "seconds": 0.0, "reason": "lspci is not installed"},
    ],
    "tables": {"Sampler": {"columns": ["reading", "load_high"], "rows": [["power | draw", 70.5], ["clock", None]]}},
}


def test_hardware_page_without_records_says_that_nothing_was_measured(tmp_path: Path) -> None:
    assert "Nothing was measured" in measured_hardware_page(load_catalog(), tmp_path)


def test_hardware_page_shows_each_record(tmp_path: Path) -> None:
    (tmp_path / "l4.json").write_text(json.dumps(RECORD))
    text = measured_hardware_page(load_catalog(), tmp_path)
    assert "Nothing was measured" not in text
    assert "## 0: NVIDIA L4, 2026-12-01\n" in text
    assert "1 passed, 0 failed, 1 skipped, in 212 s with kdoctor 0.4.0." in text
    assert "| test\\_machine.py::test\\_b | skipped | lspci is not installed |" in text
    assert "| power \\| draw | 70.5 |\n| clock |  |" in text


@pytest.mark.parametrize("change", [{"rehearsal": True}, {"tests": None}])
def test_hardware_page_refuses_other_files(change: dict[str, object], tmp_path: Path) -> None:
    (tmp_path / "l4.json").write_text(json.dumps({**RECORD, **change}))
    with pytest.raises(ValueError, match=r"l4\.json"):
        measured_hardware_page(load_catalog(), tmp_path)


_BLOCK = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def test_pages_link_only_to_what_is_in_the_repository() -> None:
    # The start page of the site links to generated pages. In the others, an id becomes such a link when it is built.
    dead = [
        f"{location}: {target}"
        for location, text in written_pages().items()
        for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", _BLOCK.sub("", text))
        if location != "docs/index.md" and not (ROOT / location).parent.joinpath(target).exists()
    ]
    assert dead == []


def test_included_files_are_linked_for_readers_of_the_repository() -> None:
    for page in [*ROOT.glob("docs/**/*.md"), *ROOT.glob("doctor/*/docs/*.md")]:
        text = page.read_text(encoding="utf-8")
        for file in re.findall(r'^--8<-- "(docs/.+)"', text, re.MULTILINE):
            assert f"]({os.path.relpath(ROOT / file, page.parent)})" in text, page
