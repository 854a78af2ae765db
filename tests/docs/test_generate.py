"""The generated pages match the code."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from kdoctor.engine.catalog import load_catalog

DOCS = Path(__file__).parents[2] / "docs"
_SPEC = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
assert _SPEC
assert _SPEC.loader
generate = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(generate)


@pytest.mark.parametrize("name", generate.PAGES)
def test_generated_page_is_up_to_date(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == generate.PAGES[name](load_catalog()), "run: make docs"


MAN = DOCS / "reference" / "kdoctor.1"


@pytest.mark.skipif(not shutil.which("man"), reason="needs man")
def test_manual_page_renders_without_warnings() -> None:
    done = subprocess.run(
        ["man", "--warnings", "--local-file", MAN],
        check=True,
        capture_output=True,
        text=True,
        env={"MANWIDTH": "80", "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
    )
    assert not done.stderr
    shown = re.sub(r".\x08", "", done.stdout)
    assert "--gpus N" in shown
    assert [line for line in shown.splitlines() if len(line) > 80] == []


def test_manual_page_has_every_command_and_is_valid_roff() -> None:
    text = MAN.read_text(encoding="utf-8")
    for command in ("check", "smoke", "explain", "checklist record", "history list"):
        assert f".SS kdoctor {command}\n" in text
    requests = {line.split()[0] for line in text.splitlines() if line.startswith(".")}
    assert requests <= {'.\\"', ".TH", ".SH", ".SS", ".PP", ".TP", ".B", ".BR", ".I", ".RI", ".nf", ".fi"}
