"""The example check of CONTRIBUTING.md works."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from helpers.facts import host
from helpers.judging import compute_check
from kdoctor.check import Check
from kdoctor.model import Status

TEXT = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")


def blocks() -> list[str]:
    found = re.findall(r"^ +```python\n(.*?)^ +```", TEXT, re.DOTALL | re.MULTILINE)
    return [re.sub(r"^ {3}", "", block, flags=re.MULTILINE) for block in found]


def example() -> Check:
    module = ModuleType("example")
    exec(blocks()[0], vars(module))  # noqa: S102 - the page's own code
    found = vars(module)["swap_unused"]
    assert isinstance(found, Check)
    return found


def test_example_test_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    written = ModuleType("kdoctor_checks.host.swap_unused")
    vars(written)["swap_unused"] = example()
    monkeypatch.setitem(sys.modules, written.__name__, written)
    names: dict[str, Any] = {}
    exec(blocks()[1], names)  # noqa: S102 - the page's own code
    names["test_swap_in_use_fails"]()


def test_example_check_fails_passes_and_is_unknown() -> None:
    check = example()
    assert check.id == "host.swap-unused"
    assert compute_check(check, host(swap_used_bytes=4096)).status is Status.FAIL
    assert compute_check(check, host(swap_used_bytes=0)).status is Status.PASS
    assert compute_check(check, host(swap_used_bytes=None)).status is Status.UNKNOWN
