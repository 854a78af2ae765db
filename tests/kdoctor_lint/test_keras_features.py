"""The rules about features that Keras 3 gets wrong, for each target."""

from pathlib import Path

import pytest
from packaging.version import Version

from kdoctor.matrix.load import load_matrix
from kdoctor_lint.engine import lint_script
from kdoctor_lint.registry import RULES
from kdoctor_lint.rules._keras_features import MEASURED_FROM, MEASURED_TO, OLDEST
from kdoctor_lint.script import read_script
from kdoctor_lint.settings import Settings

NAMES = (
    "clipping",
    "steps-per-execution",
    "optimizer-built-late",
    "random-layers",
    "scalar-loss",
    "predict-on-batch",
    "ema-overwrite",
)
OLDEST_OF = {"clipping": OLDEST, "random-layers": OLDEST}
"""Rules about what was wrong before Keras 3.10, too."""


def measured(name: str) -> str:
    return f"(Keras 3.{OLDEST_OF.get(name, MEASURED_FROM)[1]} to 3.15"


def messages(tmp_path: Path, name: str, targets: dict[str, tuple[int, int]]) -> list[str]:
    script = tmp_path / "train.py"
    script.write_text(RULES[f"lint.{name}"].bad, encoding="utf-8")
    found, _ = lint_script(read_script(str(script)), RULES, Settings(targets=targets))
    return [item.message for item in found]


@pytest.mark.parametrize("name", NAMES)
def test_message_ends_with_the_measured_releases(tmp_path: Path, name: str) -> None:
    for targets in ({}, {"keras": (3, 12)}, {"tensorflow": (2, 21), "keras": (3, 15)}):
        (message,) = messages(tmp_path, name, targets)
        assert message.endswith(f"{measured(name)})")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("release", [(3, 1), (3, 16)])
def test_release_that_was_not_measured_is_named(tmp_path: Path, name: str, release: tuple[int, int]) -> None:
    (message,) = messages(tmp_path, name, {"keras": release})
    assert message.endswith(f"Keras 3.{release[1]} was not measured)")


@pytest.mark.parametrize("name", OLDEST_OF)
def test_older_release_that_was_measured_is_not_named(tmp_path: Path, name: str) -> None:
    (message,) = messages(tmp_path, name, {"keras": (3, 6)})
    assert message.endswith(f"{measured(name)})")


@pytest.mark.parametrize("name", NAMES)
def test_keras_2_has_no_finding(tmp_path: Path, name: str) -> None:
    assert messages(tmp_path, name, {"tensorflow": (2, 15), "keras": (2, 15)}) == []


@pytest.mark.parametrize("case", ["clipnorm", "global-clipnorm", "clipvalue", "steps-per-execution", "dropout"])
def test_matrix_agrees(case: str) -> None:
    of_keras = [row for row in load_matrix().keras_features if row.package == "keras"]
    rows = [row for row in of_keras if row.feature.partition("/")[2] == case]
    oldest = MEASURED_FROM if case == "steps-per-execution" else OLDEST
    results = {
        release: row.result for row in rows for release in row.releases
        if oldest <= Version(release).release[:2] <= MEASURED_TO
    }  # fmt: skip
    assert {Version(release).release[:2] for release in results} >= {oldest, MEASURED_TO}
    assert "right" not in results.values()


def test_layer_that_another_file_makes_is_in_what_is_called(tmp_path: Path) -> None:
    head, model, *rest = RULES["lint.random-layers"].bad.partition("    model = ")
    made, *rest = "".join(rest).split("\n", 1)
    (tmp_path / "jobs.py").write_text(f"import keras\ndef build():\n    return {made}\n", encoding="utf-8")
    (tmp_path / "train.py").write_text(f"import jobs\n{head}{model}jobs.build()\n{rest[0]}", encoding="utf-8")
    found, _ = lint_script(read_script(str(tmp_path / "train.py")), RULES, Settings())
    assert [item.message.partition(" draws")[0] for item in found] == ["`Dropout` in it"]
