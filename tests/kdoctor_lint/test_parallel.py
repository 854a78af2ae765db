"""Linting in several processes gives the same report as in one."""

import os
from pathlib import Path

import pytest

from kdoctor.text.canvas import PLAIN
from kdoctor_lint import parallel
from kdoctor_lint.engine import lint
from kdoctor_lint.parallel import in_order
from kdoctor_lint.registry import RULES
from kdoctor_lint.report.json import render_json
from kdoctor_lint.script import STDIN


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for number, rule in enumerate(RULES.values()):
        (tmp_path / f"{number:02}.py").write_text(rule.bad, encoding="utf-8")
    (tmp_path / "broken.py").write_text("def f(:\n", encoding="utf-8")
    (tmp_path / "ignored.py").write_text(
        RULES["lint.removed-api"].bad.replace("(lr=0.1)", "(lr=0.1)").rstrip() + "  # noqa: KD403\n", encoding="utf-8"
    )
    return tmp_path


def test_several_processes_give_the_same_report(tree: Path) -> None:
    one, two = lint([str(tree)], processes=1), lint([str(tree)], processes=2)
    assert render_json(one, PLAIN) == render_json(two, PLAIN)
    assert len(one.ignored) == 1
    assert [item.fixed_by for item in one.findings] == [item.fixed_by for item in two.findings]
    assert "unsafe" in [item.fixed_by for item in two.findings]


def die_or_name(file: str) -> str:
    """Ends the process once, as the kernel does if memory is short."""
    marker = Path(f"{file}.tried")
    if marker.name == "3.tried" and not marker.exists():
        marker.touch()
        os._exit(9)
    return Path(file).name


def test_a_killed_process_is_made_up_for(tmp_path: Path) -> None:
    files = [str(tmp_path / str(number)) for number in range(20)]
    assert list(in_order(die_or_name, files, processes=2)) == [str(number) for number in range(20)]


@pytest.mark.parametrize(("size", "stdin", "count"), [(10, False, 1), (3_000_000, False, 2), (3_000_000, True, 1)])
def test_processes_only_where_they_pay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, *, stdin: bool, count: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    files = [str(tmp_path / "a.py"), str(tmp_path / "missing.py"), *([STDIN] if stdin else [])]
    (tmp_path / "a.py").write_text("#" * size, encoding="utf-8")
    assert parallel._worthwhile(files) == count
