import ast
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from kdoctor_lint.flake8 import Plugin, _settings
from kdoctor_lint.registry import RULES

BAD = RULES["lint.multi-gpu-model"].bad


def found(code: str, name: str = "train.py") -> list[tuple[int, int, str]]:
    _settings.cache_clear()
    plugin = Plugin(ast.parse(code), name, code.splitlines(keepends=True))
    return [(line, column, text.split()[0]) for line, column, text, _ in plugin.run()]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_flake8_finds_the_plugin() -> None:
    (entry,) = entry_points(group="flake8.extension", name="KD")
    assert entry.load() is Plugin


def test_errors_have_a_line_a_column_and_a_code() -> None:
    assert found(BAD) == [(4, 11, "KD401")]
    assert found(BAD, "stdin") == [(4, 11, "KD401")]


def test_hints_are_not_reported() -> None:
    assert found(RULES["lint.no-prefetch"].bad) == []


def test_settings_of_the_project_apply(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.kdoctor.lint]\nignore = ['KD4']\n", encoding="utf-8")
    assert found(BAD) == []
