"""Selection of rules by options and by ``[tool.kdoctor.lint]`` in ``pyproject.toml``."""

from pathlib import Path

import pytest

from kdoctor.errors import UsageError
from kdoctor.model import Severity
from kdoctor_lint.engine import lint
from kdoctor_lint.registry import RULES, chosen_rules
from kdoctor_lint.settings import NO_SETTINGS, installed_releases, read_settings

BAD = RULES["lint.multi-gpu-model"].bad


def write(folder: Path, table: str) -> Path:
    (folder / "pyproject.toml").write_text(f"[tool.kdoctor.lint]\n{table}", encoding="utf-8")
    return folder


def test_codes_are_unique_and_stable() -> None:
    assert len({rule.code for rule in RULES.values()}) == len(RULES)
    assert RULES["lint.model-outside-scope"].code == "KD101"
    assert RULES["lint.syntax-error"].code == "KD901"


def test_hints_apply_only_on_request() -> None:
    severities = {rule.severity for rule in chosen_rules([], [], notes=False).values()}
    assert severities == {Severity.ERROR, Severity.WARNING}
    assert chosen_rules([], []) == RULES
    assert list(chosen_rules(["no-prefetch"], [], notes=False)) == ["lint.no-prefetch"]
    assert chosen_rules(["KD1,KD5"], ["KD101,KD501"]) == chosen_rules(["KD1", "KD5"], ["KD101", "KD501"])


def test_codes_and_their_start_select_rules() -> None:
    assert list(chosen_rules(["KD101"], [])) == ["lint.model-outside-scope"]
    assert {rule.code[:3] for rule in chosen_rules(["KD2"], []).values()} == {"KD2"}
    assert {rule.code for rule in chosen_rules(["KD2"], ["KD204"]).values()} == {
        rule.code for rule in RULES.values() if rule.code.startswith("KD2") and rule.code != "KD204"
    }


@pytest.mark.parametrize("name", ["KD8", "KD999", "E501"])
def test_code_without_rule_is_usage_error(name: str) -> None:
    with pytest.raises(UsageError, match=name):
        chosen_rules([name], [])


def test_nearest_pyproject_is_read(tmp_path: Path) -> None:
    write(tmp_path, 'select = ["KD1"]\nignore = ["no-prefetch"]\n')
    inner = tmp_path / "src" / "train"
    inner.mkdir(parents=True)
    settings = read_settings(inner)
    assert (settings.select, settings.ignore) == (("KD1",), ("no-prefetch",))


def test_pyproject_without_table_has_no_settings(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n", encoding="utf-8")
    settings = read_settings(tmp_path)
    assert (settings.select, settings.ignore, settings.per_file_ignores) == ((), (), {})
    assert NO_SETTINGS.ignored_in("train.py") == frozenset()


def test_rules_are_ignored_in_files_that_match(tmp_path: Path) -> None:
    settings = read_settings(write(tmp_path, '[tool.kdoctor.lint.per-file-ignores]\n"old/*" = ["KD4"]\n'))
    for folder in ("old", "new"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "train.py").write_text(BAD, encoding="utf-8")
    found = lint([str(tmp_path)], RULES, settings).findings
    assert [Path(item.spot.path).parent.name for item in found] == ["new"]


@pytest.mark.parametrize(
    ("table", "named"),
    [
        ("selct = []", "selct"),
        ("select = 'KD1'", "select"),
        ("ignore = ['nothing']", "nothing"),
        ("per-file-ignores = {'a.py' = ['nothing']}", "nothing"),
        ("select = [", "pyproject.toml"),
        ("selct = []", "tool.kdoctor.lint.selct: unknown key; did you mean 'select'"),
        ("tensorflow = 2.15", "tool.kdoctor.lint.tensorflow: "),
        ("keras = 'newest'", "tool.kdoctor.lint.keras: .*'newest'"),
        ("select = ['KD1', 3]", "tool.kdoctor.lint.select.1: "),
        ("ignore = ['no-prefetsh']", "tool.kdoctor.lint.ignore: .*lint.no-prefetch"),
        ("per-file-ignores = {'a.py' = ['KD99']}", 'tool.kdoctor.lint.per-file-ignores."a.py": .*KD99'),
    ],
)
def test_mistake_is_usage_error(tmp_path: Path, table: str, named: str) -> None:
    with pytest.raises(UsageError, match=named) as caught:
        read_settings(write(tmp_path, f"{table}\n"))
    assert "pyproject.toml" in str(caught.value)


@pytest.mark.parametrize("text", ["tool = 1", "[tool]\nkdoctor = 3", "[tool.kdoctor]\nlint = []"])
def test_something_else_than_a_table_is_usage_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match="must be a table"):
        read_settings(tmp_path)


OLD = "import keras\nmodel = keras.Sequential()\nmodel.fit_generator(x)\nimport tensorflow.contrib\n"


def removed(folder: Path, *, table: str) -> list[int]:
    settings = read_settings(write(folder, table))
    (folder / "train.py").write_text(OLD, encoding="utf-8")
    return [item.spot.line for item in lint([str(folder / "train.py")], RULES, settings).findings]


@pytest.mark.parametrize(
    ("table", "lines"),
    [
        ("", [3, 4]),
        ('tensorflow = "2.15"', [4]),
        ('tensorflow = "2.15.1"\nkeras = "3.0"', [3, 4]),
        ('tensorflow = "2.16"', [3, 4]),
        ('tensorflow = "1.15"', []),
        ('keras = "2.15"', [4]),
    ],
)
def test_removed_api_follows_releases(tmp_path: Path, table: str, lines: list[int]) -> None:
    assert removed(tmp_path, table=f"{table}\n") == lines


def test_releases_are_read_from_environment(tmp_path: Path) -> None:
    for name in ("tensorflow-2.15.1", "keras-2.15.0", "numpy-1.26.4"):
        (tmp_path / "lib" / "python3.11" / "site-packages" / f"{name}.dist-info").mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python"
    python.touch()
    assert installed_releases(python) == {"tensorflow": (2, 15), "keras": (2, 15)}
    assert installed_releases(tmp_path) == installed_releases(python)
    with pytest.raises(UsageError, match="nothing"):
        installed_releases(tmp_path / "nothing")


@pytest.mark.parametrize("table", ['tensorflow = "2"', 'tensorflow = "newest"', "keras = 3.0"])
def test_release_without_minor_number_is_usage_error(tmp_path: Path, table: str) -> None:
    with pytest.raises(UsageError, match=r"tensorflow|keras"):
        read_settings(write(tmp_path, f"{table}\n"))
