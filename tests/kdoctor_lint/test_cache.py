"""A second run takes the results of files that have not changed from the cache."""

import json
import os
import sys
from pathlib import Path

import pytest

from helpers.command import captured
from kdoctor.inputs import read_bounded
from kdoctor.text.canvas import PLAIN
from kdoctor_lint import engine
from kdoctor_lint.cache import Cache
from kdoctor_lint.model import LintReport
from kdoctor_lint.registry import RULES
from kdoctor_lint.report.json import render_json
from kdoctor_lint.script import Script, read_script
from kdoctor_lint.settings import NO_SETTINGS, Settings

HEAD = "import keras\nimport tensorflow as tf\nstrategy = tf.distribute.MirroredStrategy()\n"
TRAIN = (
    HEAD
    + """from models import build
model = build()
with strategy.scope():
    model.compile(keras.optimizers.SGD(lr=0.1))
# kdoctor: ignore[lint.no-prefetch]
model.fit(x.map(f).batch(8))  # kdoctor: ignore[lint.optimizer-built-late] why
"""
)
MODELS = "import keras\ndef build():\n    return keras.Sequential([keras.layers.Dense(1)])\n"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/train.py").write_text(TRAIN, encoding="utf-8")
    (tmp_path / "tree/models.py").write_text(MODELS, encoding="utf-8")
    (tmp_path / "tree/broken.py").write_text("print 'x'\n", encoding="utf-8")
    return tmp_path / "tree"


def run(tree: Path, settings: Settings = NO_SETTINGS) -> LintReport:
    return engine.lint([str(tree)], RULES, settings, cache=Cache(os.environ, settings))


def linted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that are linted from now on."""
    names: list[str] = []

    def read(path: str) -> Script:
        names.append(Path(path).name)
        return read_script(path)

    monkeypatch.setattr(engine, "read_script", read)
    return names


def test_second_run_reads_nothing_and_reports_the_same(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = linted(monkeypatch)
    first, second = run(tree), run(tree)
    assert sorted(names) == ["broken.py", "models.py", "train.py"]
    assert first.findings
    assert first.ignored or any(item.rule.code == "KD904" for item in first.findings)
    assert render_json(second, PLAIN) == render_json(first, PLAIN)


def test_file_that_changed_is_linted_again(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tree)
    names = linted(monkeypatch)
    (tree / "broken.py").write_text("print('x')\n", encoding="utf-8")
    assert "lint.syntax-error" not in run(tree).rules
    assert names == ["broken.py"]


@pytest.mark.parametrize("name", ["models.py", "tree.py"])
def test_file_is_linted_again_if_what_it_imports_changed(
    tree: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    before = run(tree)
    assert "lint.model-outside-scope" in before.rules
    names = linted(monkeypatch)
    if name == "models.py":
        (tree / name).write_text("def build():\n    return None\n", encoding="utf-8")
    else:
        (tree / "models.py").unlink()
        (tree.parent / "models.py").write_text("def build():\n    return None\n", encoding="utf-8")
    assert "lint.model-outside-scope" not in run(tree).rules
    assert "train.py" in names


def test_other_settings_and_rules_have_their_own_results(tree: Path) -> None:
    run(tree)
    assert "lint.removed-api" in run(tree).rules
    chosen = {"lint.syntax-error": RULES["lint.syntax-error"]}
    assert set(engine.lint([str(tree)], chosen, cache=Cache(os.environ, NO_SETTINGS)).rules) <= {
        "lint.syntax-error",
        "lint.unused-ignore",
        "lint.ignore-without-reason",
    }
    assert Cache(os.environ, Settings(entry="main")).get(str(tree / "train.py"), RULES) is None


@pytest.mark.parametrize("text", ["", "{", "[1, 2]", "3", '{"a": 1}'])
def test_broken_cache_is_as_none(tree: Path, text: str) -> None:
    expected = render_json(run(tree), PLAIN)
    file = tree.parent / "cache/kdoctor/lint.json"
    file.write_text(text, encoding="utf-8")
    assert render_json(run(tree), PLAIN) == expected
    entries = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({key: [1] for key in entries}), encoding="utf-8")
    assert render_json(run(tree), PLAIN) == expected


def test_folder_that_cannot_be_written_to_is_no_error(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tree / "models.py"))
    assert run(tree).findings


def test_standard_input_is_not_remembered(tree: Path) -> None:
    assert Cache(os.environ, NO_SETTINGS).get("-", RULES) is None


def test_results_are_found_again_by_another_process(tree: Path) -> None:
    """The order of a set differs between processes, and may not be a part of the key."""
    settings = Settings(per_file_ignores={"*.py": frozenset(RULES) - {"lint.removed-api"}})
    run(tree, settings)
    code = (
        "import os, sys; from kdoctor_lint.cache import Cache; from kdoctor_lint.engine import rules_for\n"
        "from kdoctor_lint.registry import RULES; from kdoctor_lint.settings import Settings\n"
        "settings = Settings(per_file_ignores={'*.py': frozenset(RULES) - {'lint.removed-api'}})\n"
        "print(Cache(os.environ, settings).get(sys.argv[1], rules_for(sys.argv[1], RULES, settings)) is not None)"
    )
    done = captured([sys.executable, "-c", code, str(tree / "train.py")], check=True)
    assert done.stdout == "True\n"


def test_module_that_cannot_be_read_is_looked_at_again(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tree)
    read = read_bounded

    def refuse(path: Path) -> bytes:
        if path.name == "models.py":
            raise PermissionError(13, "Permission denied")
        return read(path)

    names = linted(monkeypatch)
    monkeypatch.setattr("kdoctor_lint.cache.read_bounded", refuse)
    run(tree)
    assert "train.py" in names
