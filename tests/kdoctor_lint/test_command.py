"""``kdoctor lint`` as a user runs it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from helpers import command
from kdoctor_lint.registry import RULES
from kdoctor_lint.report.explain import EXPLANATIONS

BAD = RULES["lint.multi-gpu-model"].bad
INFO = RULES["lint.no-prefetch"].bad


def kdoctor(*args: str, stdin: str = "", cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return command.kdoctor("lint", *args, stdin=stdin, cwd=cwd)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "bad.py").write_text(BAD, encoding="utf-8")
    (tmp_path / "info.py").write_text(INFO, encoding="utf-8")
    (tmp_path / "good.py").write_text(RULES["lint.no-prefetch"].good, encoding="utf-8")
    return tmp_path


def test_no_findings_is_success(folder: Path) -> None:
    done = kdoctor("good.py", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == 1


def test_finding_fails(folder: Path) -> None:
    done = kdoctor("bad.py", "good.py", cwd=folder)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("bad.py:4:12: error: KD401 lint.multi-gpu-model\n")


def test_fix_says_that_nothing_was_fixed(folder: Path) -> None:
    assert kdoctor("--fix", "info.py", cwd=folder).stderr == "kdoctor: nothing was fixed\n"


@pytest.mark.parametrize(("fail_on", "code"), [("error", 0), ("warning", 0), ("info", 1)])
def test_info_fails_only_if_requested(folder: Path, fail_on: str, code: int) -> None:
    assert kdoctor("info.py", "--fail-on", fail_on, cwd=folder).returncode == code


@pytest.mark.parametrize(
    ("args", "count"), [((), 0), (("--all",), 1), (("--select", "KD204"), 1), (("--select", "KD1"), 0)]
)
def test_hints_are_reported_on_request(folder: Path, args: tuple[str, ...], count: int) -> None:
    done = kdoctor("info.py", "--format", "json", *args, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(json.loads(done.stdout)["findings"]) == count


def test_pyproject_selects_rules(folder: Path) -> None:
    (folder / "pyproject.toml").write_text("[tool.kdoctor.lint]\nignore = ['KD401']\n", encoding="utf-8")
    assert kdoctor("bad.py", cwd=folder).returncode == 0
    (folder / "pyproject.toml").write_text("[tool.kdoctor.lint]\nignore = ['KD4x']\n", encoding="utf-8")
    assert kdoctor("bad.py", cwd=folder).returncode == 2


def test_unreadable_files_fail_and_others_are_linted(folder: Path) -> None:
    (folder / "broken.py").write_text("def :\n", encoding="utf-8")
    (folder / "binary.py").write_bytes(b"\0")
    done = kdoctor("broken.py", "binary.py", "bad.py", "--format", "json", cwd=folder)
    assert (done.returncode, done.stderr) == (1, "")
    found = [item["rule"] for item in json.loads(done.stdout)["findings"]]
    assert found == ["lint.syntax-error", "lint.unreadable-file", "lint.multi-gpu-model"]


def test_select_and_ignore_choose_rules(folder: Path) -> None:
    assert kdoctor("bad.py", "--ignore", "lint.multi-gpu-model", cwd=folder).returncode == 0
    assert kdoctor("bad.py", "--select", "no-prefetch", cwd=folder).returncode == 0
    assert kdoctor("bad.py", "--select", "multi-gpu-model", cwd=folder).returncode == 1


def test_syntax_error_is_reported_whatever_is_selected(folder: Path) -> None:
    (folder / "broken.py").write_text("def :\n", encoding="utf-8")
    assert kdoctor("broken.py", "--select", "no-prefetch", cwd=folder).returncode == 1


def test_standard_input_is_linted(folder: Path) -> None:
    done = kdoctor("-", stdin=BAD)
    assert done.returncode == 1
    assert done.stdout.startswith("-:4:12: error: KD401 lint.multi-gpu-model\n")


def test_several_reports_are_written(folder: Path) -> None:
    done = kdoctor("bad.py", "-f", "github", "-o", "sarif=out.sarif", "-o", "json=out.json", cwd=folder)
    assert done.returncode == 1
    assert done.stdout.startswith("::error title=KD401 lint.multi-gpu-model,file=bad.py,line=4,")
    assert json.loads((folder / "out.sarif").read_text(encoding="utf-8"))["version"] == "2.1.0"
    assert json.loads((folder / "out.json").read_text(encoding="utf-8"))["schema"] == "kdoctor/lint/v1"


def test_codes_are_names_and_lint_names_all_rules() -> None:
    assert {"KD101", "lint.clipping"} <= {*EXPLANATIONS.names()}
    assert "KD101 lint.model-outside-scope:" in EXPLANATIONS.explain("lint")


def test_explain(screen: SnapshotAssertion) -> None:
    done = kdoctor("--explain", "jit-compile")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == screen


@pytest.mark.parametrize(
    ("args", "named"),
    [
        ((), "kdoctor lint train.py notebooks/"),
        (("--explain", "jit-compil"), "'lint.jit-compile'"),
        (("x.py", "--select", "nothing"), "'nothing'"),
        (("x.py", "--format", "xml"), "xml"),
        (("x.py", "--output", "json=absent/out.json"), "absent/out.json"),
        (("x.py", "--select", "jit-compile", "--ignore", "jit-compile"), "KD101, KD102"),
        (("empty",), "empty"),
        (("nope.py",), "nope.py"),
    ],
)
def test_usage_error_names_what_is_wrong(tmp_path: Path, args: tuple[str, ...], named: str) -> None:
    (tmp_path / "empty").mkdir()
    done = kdoctor(*args, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert named in done.stderr
    assert "Traceback" not in done.stderr


def test_script_is_not_run_and_tensorflow_is_not_imported(tmp_path: Path) -> None:
    marker = tmp_path / "was_run"
    (tmp_path / "train.py").write_text(f"open({str(marker)!r}, 'w')\n{BAD}", encoding="utf-8")
    program = (
        "import sys\nfrom kdoctor_lint.engine import lint\nlint(sys.argv[1:])\n"
        "print([name for name in sys.modules if name.split('.')[0] in {'tensorflow', 'keras', 'numpy'} "
        "or name.startswith(('kdoctor.probes', 'kdoctor.engine.judge', 'kdoctor.check', 'kdoctor_checks'))])"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"
    assert not marker.exists()


ENTRY = """import keras
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()

def main(arguments):
    model = keras.Sequential([keras.layers.Dense(1)])
    with strategy.scope():
        model.compile("adam", "mse")
"""


@pytest.mark.parametrize("named", ["train.py", "."])
def test_entry_is_started(named: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(ENTRY, encoding="utf-8")
    assert kdoctor(named, cwd=tmp_path).returncode == 0
    done = kdoctor(named, "--entry", "main", cwd=tmp_path)
    assert (done.returncode, "KD101" in done.stdout) == (1, True)


def test_entry_that_does_not_exist_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(ENTRY, encoding="utf-8")
    done = kdoctor("train.py", "--entry", "mian", cwd=tmp_path)
    assert done.returncode == 2
    assert "main" in done.stderr


def test_no_cache_writes_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    assert kdoctor("bad.py", "--no-cache", cwd=folder).returncode == 1
    assert not (folder / "cache").exists()
    assert kdoctor("bad.py", cwd=folder).returncode == kdoctor("bad.py", cwd=folder).returncode == 1
    assert (folder / "cache/kdoctor/lint.json").exists()
