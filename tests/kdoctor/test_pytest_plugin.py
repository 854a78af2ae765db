"""The pytest plugin in a project that uses it."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from helpers.command import make_target
from kdoctor import pytest_plugin

pytest_plugins = ["pytester"]
needs_tensorflow = pytest.mark.skipif(find_spec("tensorflow") is None, reason="TensorFlow is not installed")
OPTIONS = "--no-smoke --select versions.tensorflow-installed --select smoke"


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KDOCTOR_NO_HISTORY", "1")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_subprocess("-p", "kdoctor", "-rsx", *arguments, timeout=120)


def test_plugin_is_inert_by_default(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_one(): pass")
    run(pytester).assert_outcomes(passed=1)


@needs_tensorflow
def test_each_check_is_a_test(pytester: pytest.Pytester) -> None:
    done = run(
        pytester, "--kdoctor", "cpu-smoke", "--kdoctor-options", OPTIONS, "-k", "tensorflow-installed or baseline"
    )
    done.assert_outcomes(passed=1, skipped=1)
    done.stdout.fnmatch_lines(["*--no-smoke*"])


def test_failed_check_shows_finding_and_fix(pytester: pytest.Pytester, tmp_path: Path) -> None:
    target = make_target(tmp_path / "empty")
    options = f"{OPTIONS} --python {target}"
    done = run(pytester, "--kdoctor", "cpu-smoke", "--kdoctor-options", options, "-k", "tensorflow-installed")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*Expected: *", "*Fix: *", "Check: versions.tensorflow-installed *"])
    done.stdout.no_fnmatch_line("*Traceback*")
    done.stdout.no_fnmatch_line("*runtest*")


def test_configuration_selects_checklist(pytester: pytest.Pytester) -> None:
    pytester.makeini(f"[pytest]\nkdoctor_checklist = cpu-smoke\nkdoctor_options = {OPTIONS}\n")
    done = run(pytester, "--collect-only", "-q")
    done.stdout.fnmatch_lines(["*versions.tensorflow-installed*", "*smoke.baseline*"])


@needs_tensorflow
def test_fixture_is_the_report(pytester: pytest.Pytester) -> None:
    pytester.makeini(f"[pytest]\nkdoctor_options = --checklist cpu-smoke {OPTIONS}\n")
    pytester.makepyfile(
        """
        def test_one(kdoctor_report):
            assert kdoctor_report["schema"] == "kdoctor/report/v1"
            assert kdoctor_report["checklist"]["name"] == "cpu-smoke"
            assert kdoctor_report["verdict"] == "pass"
        """
    )
    run(pytester).assert_outcomes(passed=1)


def test_failed_fit_has_its_diagnosis(pytester: pytest.Pytester) -> None:
    """Only exceptions that come from a training framework are diagnosed."""
    pytester.makepyfile(
        keras="""
        def fit():
            raise RuntimeError("Mixing different tf.distribute.Strategy objects: one is not the other")
        """,
        test_job="""
        import keras

        def test_fit():
            keras.fit()

        def test_other():
            raise RuntimeError("Mixing different tf.distribute.Strategy objects: one is not the other")
        """,
    )
    done = run(pytester)
    done.assert_outcomes(failed=2)
    done.stdout.fnmatch_lines(["*kdoctor diagnose*", "*Fix: *strategy.scope()*"])
    assert done.stdout.str().count("kdoctor diagnose") == 1


def test_missing_checklist_is_a_usage_error(pytester: pytest.Pytester) -> None:
    done = run(pytester, "--kdoctor", "nosuch")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines(["*nosuch*"])


@needs_tensorflow
def test_xdist_processes_share_one_run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KDOCTOR_NO_HISTORY", "0")
    monkeypatch.setenv("KDOCTOR_HISTORY", str(pytester.path / "history.sqlite"))
    monkeypatch.setenv("TMPDIR", str(pytester.path))
    victim = pytester.path / "victim"
    victim.write_text("{}")
    for name in ("kdoctor-ci.json", "kdoctor-ci.lock"):  # a link of another user at a name that can be guessed
        (pytester.path / name).symlink_to(victim)
    options = ("--kdoctor", "cpu-smoke", "--kdoctor-options", OPTIONS, "-k", "versions", "--testrunuid", "ci")
    done = run(pytester, "-p", "xdist", "-n", "2", *options)
    assert done.ret == pytest.ExitCode.OK
    from kdoctor.history import read
    from kdoctor.history.store import opened

    with opened(pytester.path / "history.sqlite", create=False) as connection:
        assert len(read.runs(connection, 0, None)) == 1
    assert victim.read_text() == "{}"
    assert not list(pytester.path.glob("kdoctor-pytest-*"))


def test_child_runs_nothing_of_the_working_directory(tmp_path: Path) -> None:
    for name in ("kdoctor", "json"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(7)\n")
    command = [sys.executable, "-c", pytest_plugin._KDOCTOR, "--version"]
    assert subprocess.run(command, check=False, cwd=tmp_path, capture_output=True).returncode == 0
