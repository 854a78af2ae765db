"""kdoctor while something around it is broken: exit code, words, and nothing left behind."""

import re
from pathlib import Path

import pytest

from helpers.faults.children import SINGLE_CHILDREN
from helpers.faults.files import FILES
from helpers.faults.histories import HISTORIES
from helpers.faults.interpreters import INTERPRETERS
from helpers.faults.running import Fault, run
from helpers.faults.signals import SIGNALS
from helpers.faults.surroundings import SURROUNDINGS

FAULTS: dict[str, Fault] = {**SURROUNDINGS, **HISTORIES, **INTERPRETERS, **SIGNALS, **SINGLE_CHILDREN, **FILES}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.faults] if fault.slow else []) for name, fault in FAULTS.items()]
)
def test_fault_is_survived(name: str, tmp_path: Path) -> None:
    fault = FAULTS[name]
    found = run(fault, tmp_path)
    text = " ".join((found.stdout + found.stderr).split())
    assert found.exit_code in fault.exits, text
    assert re.search(fault.says, text), text
    assert "Traceback" not in text
    assert "internal error" not in text
    assert found.left == ()
