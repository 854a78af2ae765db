"""The example of CONTRIBUTING.md is a check that works."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

from helpers.facts import host
from helpers.judging import compute_check
from kdoctor.check import Check
from kdoctor.model import Status

TEXT = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")


def example() -> Check:
    (source, *_) = re.findall(r"^ +```python\n(.*?)^ +```", TEXT, re.DOTALL | re.MULTILINE)
    module = ModuleType("example")
    exec(re.sub(r"^ {3}", "", source, flags=re.MULTILINE), vars(module))  # noqa: S102 - the page's own code
    found = vars(module)["swap_unused"]
    assert isinstance(found, Check)
    return found


def test_the_example_fails_passes_and_is_unknown() -> None:
    check = example()
    assert check.id == "host.swap-unused"
    assert compute_check(check, host(swap_used_bytes=4096)).status is Status.FAIL
    assert compute_check(check, host(swap_used_bytes=0)).status is Status.PASS
    assert compute_check(check, host(swap_used_bytes=None)).status is Status.UNKNOWN
